"""What was said, turn by turn, whole or in pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, select

from app.conversation.outcomes import RunStatus
from app.errors import InvalidInput
from app.store.adapter import EntryRow, RunRecord, TranscriptPage, TurnRow
from app.store.bodies import CONTENT, read_entry, size_of
from app.store.branch_entries import rows_of
from app.store.cursors import check_limit
from app.store.database import SqlPart, Unread
from app.store.lineage import (
    Stretch,
    batches,
    end_of_branch,
    head_of,
    require_run,
    walk,
)
from app.store.records import IS_OF_THREAD, RUNS, THIS_RUN, read_run, read_time
from app.store.tables import entries, runs

_BEFORE = select(runs.c.previous_run_id, runs.c.branch_after_seq).where(THIS_RUN, IS_OF_THREAD)
_RUN = RUNS.where(THIS_RUN)
_TURNS = select(runs.c.id, runs.c.previous_run_id, runs.c.status, runs.c.created_at, runs.c.meta).where(
    runs.c.namespace == bindparam("ns"), runs.c.id.in_(bindparam("runs", expanding=True))
)
_RUN_ENTRIES = (
    select(entries.c.seq, entries.c.run_id, *CONTENT)
    .where(entries.c.namespace == bindparam("ns"), entries.c.run_id == bindparam("run"))
    .order_by(entries.c.seq)
)


class Transcripts(SqlPart):
    """Reads branches as turns: a run with its entries, in the order of insertion."""

    async def load(
        self, namespace: str, thread_id: str, previous_run_id: str | None = None
    ) -> Sequence[TurnRow]:
        return await self.transcript(namespace, thread_id, previous_run_id)

    async def transcript(
        self, namespace: str, thread_id: str, run_id: str | None = None
    ) -> Sequence[TurnRow]:
        return await self._read_parsed(partial(_transcript, ns=namespace, thread_id=thread_id, run_id=run_id))

    async def transcript_page(
        self,
        namespace: str,
        thread_id: str,
        *,
        limit: int = 50,
        before_run_id: str | None = None,
        run_id: str | None = None,
    ) -> TranscriptPage:
        check_limit(limit)
        return await self._read_parsed(
            partial(_page, ns=namespace, thread_id=thread_id, limit=limit, place=before_run_id, run_id=run_id)
        )

    async def run_entries(self, namespace: str, run_id: str) -> Sequence[EntryRow]:
        return await self._read_parsed(partial(_run_entries, ns=namespace, run_id=run_id))


def _transcript(connection: Connection, ns: str, thread_id: str, run_id: str | None) -> Unread[list[TurnRow]]:
    end = end_of_branch(connection, ns, thread_id, run_id)
    fetched = _fetch(connection, ns, walk(connection, ns, end)[::-1])
    return Unread(fetched.size, fetched.turns)


def _page(
    connection: Connection, ns: str, thread_id: str, limit: int, place: str | None, run_id: str | None
) -> Unread[TranscriptPage]:
    """Walks from the cursor and not from the head, one run further than it shows."""
    head = head_of(connection, ns, thread_id)
    start = head if run_id is None else require_run(connection, ns, thread_id, run_id)
    if place is not None:
        start = _before(connection, ns, thread_id, place)
    found = walk(connection, ns, start, limit + 1)
    shown = found[:limit]
    fetched = _fetch(connection, ns, shown[::-1])
    following = shown[-1].run_id if len(found) > limit else None
    latest = _run(connection, ns, head)
    return Unread(fetched.size, lambda: TranscriptPage(fetched.turns(), following, latest))


def _before(connection: Connection, ns: str, thread_id: str, run_id: str) -> Stretch | None:
    row = connection.execute(_BEFORE, {"ns": ns, "thread": thread_id, "run": run_id}).first()
    if row is None:
        raise InvalidInput(f"before_run_id is no run of thread {thread_id}.", field="before_run_id")
    return None if row.previous_run_id is None else Stretch(row.previous_run_id, row.branch_after_seq)


def _run(connection: Connection, ns: str, head: Stretch | None) -> RunRecord | None:
    if head is None:
        return None
    return read_run(connection.execute(_RUN, {"ns": ns, "run": head.run_id}).one())


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The rows of some runs, in the order they are wanted, and of their entries."""

    runs: list[Any]
    said: Mapping[str, Sequence[Any]]

    @property
    def size(self) -> int:
        return sum(size_of(rows) for rows in self.said.values())

    def turns(self) -> list[TurnRow]:
        return [_turn(row, self.said.get(row.id, ())) for row in self.runs]


def _fetch(connection: Connection, ns: str, branch: Sequence[Stretch]) -> _Fetched:
    """The rows of these runs, in this order."""
    found: dict[str, Any] = {}
    run_ids = [stretch.run_id for stretch in branch]
    for lot in batches(run_ids):
        for row in connection.execute(_TURNS, {"ns": ns, "runs": lot}):
            found[row.id] = row
    return _Fetched([found[run_id] for run_id in run_ids], rows_of(connection, ns, branch))


def _turn(row: Any, said: Sequence[Any]) -> TurnRow:
    return TurnRow(
        run_id=row.id,
        previous_run_id=row.previous_run_id,
        status=RunStatus(row.status),
        created_at=read_time(row.created_at),
        meta=row.meta,
        entries=[read_entry(entry) for entry in said],
    )


def _run_entries(connection: Connection, ns: str, run_id: str) -> Unread[list[EntryRow]]:
    rows = connection.execute(_RUN_ENTRIES, {"ns": ns, "run": run_id}).all()
    return Unread(size_of(rows), lambda: [EntryRow(row.seq, row.run_id, read_entry(row)) for row in rows])
