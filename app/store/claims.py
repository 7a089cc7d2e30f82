"""Claims: a run is started on a thread at rest, with its opening entries, or nothing is stored."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    literal,
    null,
    select,
    union_all,
    update,
)

from app.clock import format_millis
from app.conversation.outcomes import RunStatus
from app.errors import (
    AlreadyResumed,
    HeadMoved,
    NotFound,
    OutcomeUnknown,
    RunExists,
    StorageFailed,
    ThreadBusy,
)
from app.store.adapter import Claim, Keep, RunRecord
from app.store.bodies import insert_entries
from app.store.database import SqlPart
from app.store.lineage import require_run
from app.store.records import IS_RUNNING, OF_THREAD, RUNS, THIS_RUN, read_run, stored_instant
from app.store.run_rows import Collision, insert_run
from app.store.tables import KEY, entries, runs
from app.store.thread_rows import branch_head, hold_or_make_thread, mark_shared, move_head

logger = logging.getLogger(__name__)
_RACES = 5
_SETTLE_DELAYS = (0, 0.2, 0.5, 1, 2)


def _looked(found: str, *told: Any) -> Select[Any]:
    """A part of a look at the runs, marked with what it looks for."""
    mark: ColumnElement[str] = literal(found, Text, literal_execute=True)
    names = "thread_id", "status", "state", "meta"
    given = told or (null(),) * len(names)
    columns = (column.label(name) for column, name in zip(given, names, strict=True))
    return select(mark.label("found"), runs.c.id, *columns)


_LOOK = union_all(
    _looked("left", runs.c.thread_id, runs.c.status, runs.c.state, runs.c.meta).where(
        runs.c.namespace == bindparam("ns"), runs.c.id == bindparam("previous")
    ),
    _looked("taken").where(THIS_RUN),
    _looked("live").where(OF_THREAD, IS_RUNNING),
)
"""What a claim must know: what the previous run left, and whether the run id or the thread is taken."""

_RUN = RUNS.where(THIS_RUN)
_CUT = select(entries.c.seq).where(
    entries.c.namespace == bindparam("ns"),
    entries.c.run_id == bindparam("run"),
    entries.c.entry_id == bindparam("entry"),
)
_RESUME = (
    update(runs)
    .where(THIS_RUN, runs.c.status == RunStatus.PAUSED.value, runs.c.resumed_by.is_(None))
    .values(resumed_by=bindparam("by", type_=KEY))
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run stands: behind `previous`, after its entry number `cut` if it is not behind all of it.

    `state` and `meta` are what the previous run left.
    """

    previous: str | None
    cut: int | None
    state: Any
    meta: Any


class Claims(SqlPart):
    """Who gets a run. What guards that is the database's own."""

    async def claim(self, claim: Claim) -> RunRecord:
        """One whose outcome is unknown is made again, which settles it: under the hold of the thread the
        first is over, and its run is found or is not there."""
        try:
            return await self._grant(claim)
        except OutcomeUnknown as lost:
            return await self._settle(claim, lost)

    async def _grant(self, claim: Claim, in_doubt: Sequence[object] = ()) -> RunRecord:
        """A claim that loses a race looks again, and then finds what it lost to."""
        for _ in range(_RACES):
            try:
                return await self._database.write(partial(_claim, claim=claim, in_doubt=in_doubt))
            except Collision:
                continue
        raise StorageFailed("The database kept refusing the run.")

    async def _settle(self, claim: Claim, lost: OutcomeUnknown) -> RunRecord:
        """Tries until the database is back, for some seconds. The error that was lost, if it is not."""
        in_doubt = [lost.result]
        for delay in _SETTLE_DELAYS:
            logger.warning("run %s: whether its claim was stored is looked up in %s s", claim.run_id, delay)
            await asyncio.sleep(delay)
            try:
                return await self._grant(claim, in_doubt)
            except OutcomeUnknown as again:
                in_doubt.append(again.result)
            except StorageFailed:
                continue
        raise lost


def _claim(connection: Connection, claim: Claim, in_doubt: Sequence[object]) -> RunRecord:
    """Holds the thread first: what is looked at afterwards stays true until the commit.

    A run that has the id and equals one in doubt is the claim's own: the number that a run gets is never
    given out twice.
    """
    ns, thread_id = claim.namespace, claim.thread_id
    head = hold_or_make_thread(connection, ns, thread_id, claim.thread)
    try:
        place = _look(connection, claim, head)
    except RunExists:
        row = connection.execute(_RUN, {"ns": ns, "run": claim.run_id}).first() if in_doubt else None
        stored = None if row is None else read_run(row)
        if stored is None or stored not in in_doubt:
            raise
        return stored
    if claim.resumes:
        _resume(connection, claim, place.previous)
    record = _start(connection, claim, place)
    shown = insert_entries(connection, ns, thread_id, claim.run_id, claim.entries)
    if place.previous == head and place.cut is None:
        move_head(
            connection, ns, thread_id, claim.run_id, shown=shown, at=claim.created_at, title=claim.title
        )
    else:
        branch_head(connection, ns, thread_id, claim.run_id, at=claim.created_at, title=claim.title)
    return record


def _look(connection: Connection, claim: Claim, head: str | None) -> _Place:
    """Where the run goes. RunExists, ThreadBusy, HeadMoved or NotFound if the claim is refused."""
    previous = head if isinstance(claim.previous_run_id, Keep) else claim.previous_run_id
    given = {"ns": claim.namespace, "thread": claim.thread_id, "run": claim.run_id, "previous": previous}
    found = {row.found: row for row in connection.execute(_LOOK, given)}
    if "taken" in found:
        raise RunExists(claim.run_id)
    if "live" in found:
        raise ThreadBusy(claim.thread_id, found["live"].id)
    if not isinstance(claim.expected_head, Keep) and claim.expected_head != head:
        raise HeadMoved(claim.thread_id)
    if previous is None:
        if claim.resumes or claim.branch_after_entry is not None:
            raise NotFound("There is no previous run.", field="run_id")
        return _Place(None, None, None, None)
    if previous != head:
        require_run(connection, claim.namespace, claim.thread_id, previous)
    return _behind(connection, claim, found["left"], previous == head)


def _behind(connection: Connection, claim: Claim, left: Any, is_head: bool) -> _Place:
    """The place behind a run of the conversation. ThreadBusy while that is live, in another thread: what it
    still says would change the past of this one."""
    ns = claim.namespace
    if left.status == RunStatus.RUNNING.value:
        raise ThreadBusy(left.thread_id, left.id)
    cut: int | None = None
    if claim.branch_after_entry is not None:
        given = {"ns": ns, "run": left.id, "entry": claim.branch_after_entry}
        cut = connection.execute(_CUT, given).scalar()
        if cut is None:
            raise NotFound(f"Run {left.id} has no entry {claim.branch_after_entry}.", field="entry_id")
    if not is_head and left.thread_id != claim.thread_id:
        mark_shared(connection, ns, claim.thread_id, left.thread_id)
    return _Place(left.id, cut, left.state, left.meta)


def _resume(connection: Connection, claim: Claim, previous: str | None) -> None:
    """Takes the open questions of a paused run. AlreadyResumed if it has none, or another was quicker."""
    assert previous is not None
    taken = connection.execute(_RESUME, {"ns": claim.namespace, "run": previous, "by": claim.run_id})
    if taken.rowcount == 0:
        raise AlreadyResumed(previous)


def _start(connection: Connection, claim: Claim, place: _Place) -> RunRecord:
    """Inserts the run, with what the previous one left where the claim keeps it."""
    state = place.state if isinstance(claim.state, Keep) else claim.state
    meta = place.meta if isinstance(claim.meta, Keep) else claim.meta
    values: dict[str, Any] = {
        "namespace": claim.namespace,
        "id": claim.run_id,
        "thread_id": claim.thread_id,
        "agent": claim.agent,
        "sender_id": claim.sender_id,
        "previous_run_id": place.previous,
        "branch_after_entry": claim.branch_after_entry,
        "branch_after_seq": place.cut,
        "parent_run_id": claim.parent_run_id,
        "status": RunStatus.RUNNING.value,
        "owner": claim.owner,
        "state": state,
        "meta": meta,
        "input": claim.input,
        "digest": claim.digest,
        "created_at": format_millis(claim.created_at),
    }
    seq = insert_run(connection, values)
    return RunRecord(
        seq=seq,
        id=claim.run_id,
        thread_id=claim.thread_id,
        agent=claim.agent,
        sender_id=claim.sender_id,
        previous_run_id=place.previous,
        parent_run_id=claim.parent_run_id,
        status=RunStatus.RUNNING,
        end_reason=None,
        epoch=1,
        state=state,
        meta=meta,
        input=claim.input,
        interrupts=[],
        usage=[],
        error=None,
        digest=claim.digest,
        created_at=stored_instant(claim.created_at),
        ended_at=None,
        branch_after_entry=claim.branch_after_entry,
    )
