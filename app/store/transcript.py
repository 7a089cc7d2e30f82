"""What was said, turn by turn, whole or in pages."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, select

from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunStatus
from app.errors import InvalidInput
from app.store.adapter import EntryRow, RunRecord, TranscriptPage, TurnRow
from app.store.bodies import CONTENT, read_entry, size_of
from app.store.cursors import check_limit
from app.store.database import SqlPart, Unread
from app.store.lineage import OF_RUNS, batches, end_of_branch, head_of, require_run, walk
from app.store.records import RUNS, THIS_RUN, read_run, read_time
from app.store.tables import entries, runs

_PREVIOUS = select(runs.c.thread_id, runs.c.previous_run_id).where(THIS_RUN)
_RUN = RUNS.where(THIS_RUN)
_TURNS = select(runs.c.id, runs.c.previous_run_id, runs.c.status, runs.c.created_at, runs.c.meta).where(
    runs.c.namespace == bindparam("ns"), runs.c.id.in_(bindparam("runs", expanding=True))
)
_ENTRIES = select(entries.c.run_id, *CONTENT).where(OF_RUNS).order_by(entries.c.run_id, entries.c.seq)
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
            partial(
                _page, ns=namespace, thread_id=thread_id, limit=limit, before=before_run_id, run_id=run_id
            )
        )

    async def run_entries(self, namespace: str, run_id: str) -> Sequence[EntryRow]:
        return await self._read_parsed(partial(_run_entries, ns=namespace, run_id=run_id))


def _transcript(connection: Connection, ns: str, thread_id: str, run_id: str | None) -> Unread[list[TurnRow]]:
    end = end_of_branch(connection, ns, thread_id, run_id)
    fetched = _fetch(connection, ns, walk(connection, ns, end)[::-1])
    return Unread(fetched.size, fetched.turns)


def _page(
    connection: Connection, ns: str, thread_id: str, limit: int, before: str | None, run_id: str | None
) -> Unread[TranscriptPage]:
    """Walks from the cursor and not from the head, one run further than it shows."""
    head = head_of(connection, ns, thread_id)
    start = head if run_id is None else require_run(connection, ns, thread_id, run_id)
    if before is not None:
        start = _previous(connection, ns, thread_id, before)
    found = walk(connection, ns, start, limit + 1)
    shown = found[:limit]
    fetched = _fetch(connection, ns, shown[::-1])
    following = shown[-1] if len(found) > limit else None
    latest = _run(connection, ns, head)
    return Unread(fetched.size, lambda: TranscriptPage(fetched.turns(), following, latest))


def _previous(connection: Connection, ns: str, thread_id: str, run_id: str) -> str | None:
    row = connection.execute(_PREVIOUS, {"ns": ns, "run": run_id}).first()
    if row is None or row.thread_id != thread_id:
        raise InvalidInput(f"before_run_id is no run of thread {thread_id}.", field="before_run_id")
    return row.previous_run_id


def _run(connection: Connection, ns: str, run_id: str | None) -> RunRecord | None:
    if run_id is None:
        return None
    return read_run(connection.execute(_RUN, {"ns": ns, "run": run_id}).one())


@dataclass(frozen=True, slots=True)
class _Fetched:
    """The rows of some runs, in the order they are wanted, and of their entries."""

    runs: list[Any]
    entries: list[Any]

    @property
    def size(self) -> int:
        return size_of(self.entries)

    def turns(self) -> list[TurnRow]:
        said: defaultdict[str, list[StoredEntry]] = defaultdict(list)
        for row in self.entries:
            said[row.run_id].append(read_entry(row))
        return [_turn(row, said.get(row.id, [])) for row in self.runs]


def _fetch(connection: Connection, ns: str, run_ids: Sequence[str]) -> _Fetched:
    """The rows of these runs, in this order."""
    found: dict[str, Any] = {}
    said: list[Any] = []
    for lot in batches(run_ids):
        place = {"ns": ns, "runs": lot}
        said.extend(connection.execute(_ENTRIES, place))
        for row in connection.execute(_TURNS, place):
            found[row.id] = row
    return _Fetched([found[run_id] for run_id in run_ids], said)


def _turn(row: Any, said: Sequence[StoredEntry]) -> TurnRow:
    return TurnRow(
        run_id=row.id,
        previous_run_id=row.previous_run_id,
        status=RunStatus(row.status),
        created_at=read_time(row.created_at),
        meta=row.meta,
        entries=said,
    )


def _run_entries(connection: Connection, ns: str, run_id: str) -> Unread[list[EntryRow]]:
    rows = connection.execute(_RUN_ENTRIES, {"ns": ns, "run": run_id}).all()
    return Unread(size_of(rows), lambda: [EntryRow(row.seq, row.run_id, read_entry(row)) for row in rows])
