"""The ledger: who runs what, and how it ended."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import JsonValue
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    insert,
    literal,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.exc import IntegrityError

from app.clock import Instant, format_millis
from app.conversation.messages import Usage
from app.conversation.outcomes import RunEnd, RunStatus, error_of
from app.errors import Conflict, HeadMoved, NotFound, OutcomeUnknown, RunExists, StorageFailed, ThreadBusy
from app.store.adapter import KEEP, Claim, Keep, NewEntry, RunRecord
from app.store.bodies import insert_entries
from app.store.database import SqlPart
from app.store.records import IS_RUNNING, OF_THREAD, RUNS, THIS_RUN, read_run, stored_instant
from app.store.tables import runs
from app.store.thread_rows import grow, hold_or_make_thread, move_head, touch

logger = logging.getLogger(__name__)
_RACES = 5
_SETTLE_DELAYS = (0, 0.2, 0.5, 1, 2)


def _looked(found: str, state: Any, meta: Any) -> Select[str, Any, Any, Any]:
    """A part of a look at the runs, marked with what it looks for."""
    mark: ColumnElement[str] = literal(found, Text, literal_execute=True)
    return select(mark.label("found"), runs.c.id, state.label("state"), meta.label("meta"))


_LOOK = union_all(
    _looked("left", runs.c.state, runs.c.meta).where(
        runs.c.namespace == bindparam("ns"), runs.c.id == bindparam("head")
    ),
    _looked("taken", null(), null()).where(THIS_RUN),
    _looked("live", null(), null()).where(OF_THREAD, IS_RUNNING),
)
"""What a claim must know: the state that the head left, and whether the run id or the thread is taken."""

_INSERT = insert(runs)
_HOLD = select(runs.c.thread_id, runs.c.status).where(THIS_RUN).with_for_update()
_FINISH = update(runs).where(THIS_RUN, IS_RUNNING).returning(runs.c.thread_id)
_LIVE = RUNS.where(IS_RUNNING).order_by(runs.c.seq)
_RUN = RUNS.where(THIS_RUN)
_ALL = RUNS.where(OF_THREAD).order_by(runs.c.seq)


class Collision(Exception):
    """A constraint refused an insert that a look had allowed: somebody else's was committed in between."""


class Ledger(SqlPart):
    """Claims, entries and ends of runs. What guards them is the database's own."""

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

    async def append(self, namespace: str, run_id: str, entries: Sequence[NewEntry]) -> None:
        await self._database.write(partial(_append, ns=namespace, run_id=run_id, new=entries))

    async def finish(
        self,
        namespace: str,
        run_id: str,
        end: RunEnd,
        at: Instant,
        *,
        entries: Sequence[NewEntry] = (),
        state: JsonValue | Keep = KEEP,
    ) -> bool:
        unit = partial(_finish, ns=namespace, run_id=run_id, end=end, at=at, new=entries, state=state)
        return await self._database.write(unit)

    async def live_runs(self) -> Sequence[tuple[str, RunRecord]]:
        return await self._database.read(_live_runs)

    async def get_run(self, namespace: str, thread_id: str, run_id: str) -> RunRecord | None:
        return await self._database.read(partial(_get, ns=namespace, thread_id=thread_id, run_id=run_id))

    async def runs(self, namespace: str, thread_id: str) -> Sequence[RunRecord]:
        return await self._database.read(partial(_all, ns=namespace, thread_id=thread_id))


def _claim(connection: Connection, claim: Claim, in_doubt: Sequence[object]) -> RunRecord:
    """Holds the thread first: what is looked at afterwards stays true until the commit.

    A run that has the id and equals one in doubt is the claim's own: the number that a run gets is never
    given out twice.
    """
    ns, thread_id = claim.namespace, claim.thread_id
    head = hold_or_make_thread(connection, ns, thread_id, claim.thread)
    try:
        left = _look(connection, claim, head)
    except RunExists:
        stored = _get(connection, ns, thread_id, claim.run_id) if in_doubt else None
        if stored is None or stored not in in_doubt:
            raise
        return stored
    record = _start(connection, claim, head, left)
    shown = insert_entries(connection, ns, thread_id, claim.run_id, claim.entries)
    move_head(connection, ns, thread_id, claim.run_id, shown=shown, at=claim.created_at, title=claim.title)
    return record


def _look(connection: Connection, claim: Claim, head: str | None) -> tuple[JsonValue, JsonValue]:
    """State and meta of the head run. RunExists, ThreadBusy or HeadMoved if the claim is refused."""
    place = {"ns": claim.namespace, "thread": claim.thread_id, "run": claim.run_id, "head": head}
    found = {row.found: row for row in connection.execute(_LOOK, place)}
    if "taken" in found:
        raise RunExists(claim.run_id)
    if "live" in found:
        raise ThreadBusy(claim.thread_id, found["live"].id)
    if not isinstance(claim.expected_head, Keep) and claim.expected_head != head:
        raise HeadMoved(claim.thread_id)
    left = found.get("left")
    return (None, None) if left is None else (left.state, left.meta)


def _start(
    connection: Connection, claim: Claim, previous: str | None, left: tuple[JsonValue, Any]
) -> RunRecord:
    """Inserts the run behind the head, with what the head left where the claim keeps it."""
    state = left[0] if isinstance(claim.state, Keep) else claim.state
    meta = left[1] if isinstance(claim.meta, Keep) else claim.meta
    values: dict[str, Any] = {
        "namespace": claim.namespace,
        "id": claim.run_id,
        "thread_id": claim.thread_id,
        "agent": claim.agent,
        "sender_id": claim.sender_id,
        "previous_run_id": previous,
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
        previous_run_id=previous,
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
    )


def insert_run(connection: Connection, values: Mapping[str, Any]) -> int:
    """Inserts a run and returns its number. Collision if its id, or its thread, is taken."""
    try:
        result = connection.execute(_INSERT, values)
    except IntegrityError as error:
        raise Collision from error
    key = result.inserted_primary_key
    assert key is not None
    return key[0]


def _append(connection: Connection, ns: str, run_id: str, new: Sequence[NewEntry]) -> None:
    """Holds the run's row, so that its end cannot pass by."""
    run = connection.execute(_HOLD, {"ns": ns, "run": run_id}).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    if run.status != RunStatus.RUNNING.value:
        raise Conflict(f"Run {run_id} is {run.status}; nothing can be added to it.")
    shown = insert_entries(connection, ns, run.thread_id, run_id, new)
    grow(connection, ns, run.thread_id, run_id, shown)


def _finish(
    connection: Connection,
    ns: str,
    run_id: str,
    end: RunEnd,
    at: Instant,
    new: Sequence[NewEntry],
    state: JsonValue | Keep,
) -> bool:
    """Whoever changes the row from running ends the run; anybody else changes nothing."""
    values = end_values(end, at)
    if not isinstance(state, Keep):
        values["state"] = state
    thread_id = connection.execute(_FINISH, {"ns": ns, "run": run_id, **values}).scalar()
    if thread_id is None:
        return False
    shown = insert_entries(connection, ns, thread_id, run_id, new)
    grow(connection, ns, thread_id, run_id, shown)
    touch(connection, ns, thread_id, at)
    return True


def end_values(end: RunEnd, at: Instant) -> dict[str, Any]:
    """What an end leaves of a run, as JSON values by the names of the columns."""
    error = end.error or error_of(end.reason)
    return {
        "status": end.status.value,
        "end_reason": end.reason.value,
        "error": None if error is None else {"code": error.code, "message": error.message},
        "usage": [_token_usage(*part) for part in end.usage],
        "ended_at": format_millis(at),
    }


def _token_usage(provider: str | None, model: str | None, usage: Usage) -> dict[str, JsonValue]:
    """The shape of AG-UI's TokenUsage, without what is not known."""
    named = {"provider": provider, "model": model}
    return {name: text for name, text in named.items() if text is not None} | usage.model_dump(by_alias=True)


def _live_runs(connection: Connection) -> list[tuple[str, RunRecord]]:
    return [(row.namespace, read_run(row)) for row in connection.execute(_LIVE)]


def _get(connection: Connection, ns: str, thread_id: str, run_id: str) -> RunRecord | None:
    row = connection.execute(_RUN, {"ns": ns, "run": run_id}).first()
    return None if row is None or row.thread_id != thread_id else read_run(row)


def _all(connection: Connection, ns: str, thread_id: str) -> list[RunRecord]:
    return [read_run(row) for row in connection.execute(_ALL, {"ns": ns, "thread": thread_id})]
