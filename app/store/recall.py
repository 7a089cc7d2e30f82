"""What a model is given of a branch: no further back than it asks for."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from app.conversation.entries import StoredEntry
from app.conversation.recall import Recall
from app.errors import NotFound
from app.store.bodies import read_entry, size_of
from app.store.branch_entries import OF_RUNS, rows_of
from app.store.database import SqlPart, Unread
from app.store.lineage import BATCH, Stretch, before, strides
from app.store.records import THIS_RUN
from app.store.tables import entries, runs

_FIRST_STEP = 8
_ANY = select(runs.c.id).where(THIS_RUN)
_SUMMARIES = select(entries.c.run_id, entries.c.seq, entries.c.covers).where(
    OF_RUNS, entries.c.covers.is_not(None)
)
_TURNS = (
    select(entries.c.run_id)
    .where(OF_RUNS, entries.c.shown, entries.c.role.in_(("user", "assistant")))
    .group_by(entries.c.run_id)
    .having(func.count(entries.c.role.distinct()) == 2)
)
"""Runs in which a person spoke and was answered."""
_COVERED = select(entries.c.run_id, entries.c.seq).where(OF_RUNS, entries.c.entry_id == bindparam("covered"))


class Recollections(SqlPart):
    """Reads what stands before a run."""

    async def recall(self, namespace: str, run_id: str, recall: Recall) -> Sequence[StoredEntry]:
        return await self._read_parsed(partial(_recall, ns=namespace, run_id=run_id, recall=recall))


def _recall(connection: Connection, ns: str, run_id: str, recall: Recall) -> Unread[list[StoredEntry]]:
    if connection.execute(_ANY, {"ns": ns, "run": run_id}).scalar() is None:
        raise NotFound(f"There is no run {run_id}.")
    branch = _asked_part(connection, ns, before(connection, ns, run_id), recall)
    said = rows_of(connection, ns, branch)
    rows = [row for stretch in reversed(branch) for row in said.get(stretch.run_id, ())]
    return Unread(size_of(rows), lambda: [read_entry(row) for row in rows])


def _asked_part(connection: Connection, ns: str, start: Stretch | None, recall: Recall) -> list[Stretch]:
    """The branch from its end back to where the asked part begins.

    It is walked in growing steps, so that never many more runs are walked than are given.
    """
    branch: list[Stretch] = []
    covered: str | None = None
    left = recall.turns
    step = _FIRST_STEP if recall.summarised or left is not None else BATCH
    for stretches in strides(connection, ns, start, step):
        if left is not None:
            stretches, left = _newest_turns(connection, ns, stretches, left)
        if recall.summarised and covered is None:
            covered = _newest_summary(connection, ns, stretches)
        if covered is not None:
            place = _place_of(connection, ns, stretches, covered)
            if place is not None:
                at, seq = place
                return [*branch, *stretches[:at], replace(stretches[at], behind=seq)]
        branch += stretches
        if left == 0:
            break
    return branch


def _newest_turns(
    connection: Connection, ns: str, stretches: Sequence[Stretch], wanted: int
) -> tuple[Sequence[Stretch], int]:
    """These runs back to the one that completes so many turns, and how many are wanted beyond them."""
    run_ids = [stretch.run_id for stretch in stretches]
    turns = set(connection.execute(_TURNS, {"ns": ns, "runs": run_ids}).scalars())
    for at, stretch in enumerate(stretches):
        if wanted == 0:
            return stretches[:at], 0
        wanted -= stretch.run_id in turns
    return stretches, wanted


def _newest_summary(connection: Connection, ns: str, stretches: Sequence[Stretch]) -> str | None:
    """The last message that the newest summary of these runs covers; None without a summary."""
    found = _newest(connection, ns, stretches, _SUMMARIES, {})
    return None if found is None else found[1].covers


def _place_of(
    connection: Connection, ns: str, stretches: Sequence[Stretch], entry_id: str
) -> tuple[int, int] | None:
    """Which of these runs holds the entry, and its number."""
    found = _newest(connection, ns, stretches, _COVERED, {"covered": entry_id})
    return None if found is None else (found[0], found[1].seq)


def _newest(
    connection: Connection, ns: str, stretches: Sequence[Stretch], statement: Any, given: dict[str, Any]
) -> tuple[int, Any] | None:
    """Of the rows that stand on the branch the newest, and which of the runs holds it."""
    depth = {stretch.run_id: at for at, stretch in enumerate(stretches)}
    rows = connection.execute(statement, {"ns": ns, "runs": list(depth), **given})
    standing = [row for row in rows if stretches[depth[row.run_id]].holds(row.seq)]
    if not standing:
        return None
    newest = min(standing, key=lambda row: (depth[row.run_id], -row.seq))
    return depth[newest.run_id], newest
