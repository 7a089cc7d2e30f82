"""The ledger: what is added to a run, how it ended, and which runs there are."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, bindparam, select, update

from app.clock import Instant, format_millis
from app.conversation.messages import Usage
from app.conversation.outcomes import RunEnd, RunStatus, error_of
from app.errors import Conflict, NotFound
from app.store.adapter import KEEP, Keep, NewEntry, RunRecord
from app.store.bodies import insert_entries
from app.store.database import SqlPart
from app.store.lineage import batches, head_of, walk
from app.store.records import IS_OF_THREAD, IS_RUNNING, OF_THREAD, RUNS, THIS_RUN, THIS_THREAD, read_run
from app.store.tables import runs, threads
from app.store.thread_rows import grow, touch

_HOLD = select(runs.c.thread_id, runs.c.status).where(THIS_RUN).with_for_update()
_STATE = update(runs).where(THIS_RUN).values(state=bindparam("left", type_=runs.c.state.type))
_FINISH = update(runs).where(THIS_RUN, IS_RUNNING).returning(runs.c.thread_id)
_LIVE = RUNS.where(IS_RUNNING).order_by(runs.c.seq)
_RUN = RUNS.where(THIS_RUN, IS_OF_THREAD)
_OWN = RUNS.where(OF_THREAD).order_by(runs.c.seq)
_SOME = RUNS.where(runs.c.namespace == bindparam("ns"), runs.c.id.in_(bindparam("ids", expanding=True)))
_SHARED = select(threads.c.shared).where(THIS_THREAD)


class Ledger(SqlPart):
    """Entries and ends of runs. What guards them is the database's own."""

    async def append(
        self,
        namespace: str,
        run_id: str,
        entries: Sequence[NewEntry],
        *,
        state: JsonValue | Keep = KEEP,
    ) -> None:
        unit = partial(_append, ns=namespace, run_id=run_id, new=entries, state=state)
        await self._database.write(unit)

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


def _append(
    connection: Connection, ns: str, run_id: str, new: Sequence[NewEntry], state: JsonValue | Keep
) -> None:
    """Holds the run's row, so that its end cannot pass by."""
    run = connection.execute(_HOLD, {"ns": ns, "run": run_id}).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    if run.status != RunStatus.RUNNING.value:
        raise Conflict(f"Run {run_id} is {run.status}; nothing can be added to it.")
    if not isinstance(state, Keep):
        connection.execute(_STATE, {"ns": ns, "run": run_id, "left": state})
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
        "interrupts": [asked.model_dump(mode="json", by_alias=True) for asked in end.interrupts],
        "result": end.result,
        "ended_at": format_millis(at),
    }


def _token_usage(provider: str | None, model: str | None, usage: Usage) -> dict[str, JsonValue]:
    """The shape of AG-UI's TokenUsage, without what is not known."""
    named = {"provider": provider, "model": model}
    return {name: text for name, text in named.items() if text is not None} | usage.model_dump(by_alias=True)


def _live_runs(connection: Connection) -> list[tuple[str, RunRecord]]:
    return [(row.namespace, read_run(row)) for row in connection.execute(_LIVE)]


def _get(connection: Connection, ns: str, thread_id: str, run_id: str) -> RunRecord | None:
    row = connection.execute(_RUN, {"ns": ns, "thread": thread_id, "run": run_id}).first()
    return None if row is None else read_run(row)


def _all(connection: Connection, ns: str, thread_id: str) -> list[RunRecord]:
    """The thread's own runs, and of others those on the branch that ends at its head."""
    place = {"ns": ns, "thread": thread_id}
    shared = connection.execute(_SHARED, place).scalar()
    if shared is None:
        return []
    found = {row.id: read_run(row) for row in connection.execute(_OWN, place)}
    if shared:
        branch = walk(connection, ns, head_of(connection, ns, thread_id))
        for lot in batches([stretch.run_id for stretch in branch if stretch.run_id not in found]):
            found.update({row.id: read_run(row) for row in connection.execute(_SOME, {"ns": ns, "ids": lot})})
    return sorted(found.values(), key=lambda run: run.seq)
