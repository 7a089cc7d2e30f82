"""Records that an application adds to a thread, outside of any run."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, select

from app.clock import Instant, format_millis
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import NotFound, RunExists
from app.store.adapter import NewEntry
from app.store.bodies import insert_entries
from app.store.database import SqlPart
from app.store.lineage import is_whole_on_branch
from app.store.records import THIS_RUN, THIS_THREAD
from app.store.run_rows import Collision, insert_run
from app.store.tables import runs, threads
from app.store.thread_rows import conversation_of, grow, hold_thread, move_head, touch

_THREAD = select(threads.c.agent, threads.c.shared).where(THIS_THREAD)
_RUN = select(runs.c.id, runs.c.thread_id, runs.c.status, runs.c.state, runs.c.meta).where(THIS_RUN)


class ApplicationRecords(SqlPart):
    """Adds records where a thread stands."""

    async def add_records(
        self, namespace: str, thread_id: str, entries: Sequence[NewEntry], at: Instant, *, run_id: str
    ) -> str:
        unit = partial(_add, ns=namespace, thread_id=thread_id, new=entries, at=at, run_id=run_id)
        try:
            return await self._database.write(unit)
        except Collision:
            raise RunExists(run_id) from None


def _add(
    connection: Connection, ns: str, thread_id: str, new: Sequence[NewEntry], at: Instant, run_id: str
) -> str:
    """Holds the thread, so that its head is not moved meanwhile."""
    found, head = hold_thread(connection, ns, thread_id)
    if not found:
        raise NotFound(f"There is no thread {thread_id}.")
    row = None if head is None else connection.execute(_RUN, {"ns": ns, "run": head}).one()
    if row is None or _is_others_too(connection, ns, thread_id, row):
        _make(connection, ns, thread_id, row, at, run_id)
        shown = insert_entries(connection, ns, thread_id, run_id, new)
        move_head(connection, ns, thread_id, run_id, shown=shown, at=at, title=None)
        return run_id
    shown = insert_entries(connection, ns, row.thread_id, row.id, new)
    grow(connection, ns, thread_id, row.id, shown)
    touch(connection, ns, thread_id, at)
    return row.id


def _is_others_too(connection: Connection, ns: str, thread_id: str, head: Any) -> bool:
    """Whether other threads would get the record too. A paused run stays the head all the same: it waits
    there for its answers."""
    shared = connection.execute(_THREAD, {"ns": ns, "thread": thread_id}).one().shared
    if not shared or head.status == RunStatus.PAUSED.value:
        return False
    if head.thread_id != thread_id:
        return True
    others = [row for row in conversation_of(connection, ns, thread_id) if row.id != thread_id]
    ends = [row.head_run_id for row in others if row.head_run_id is not None]
    return any(is_whole_on_branch(connection, ns, end, head.id) for end in ends)


def _make(connection: Connection, ns: str, thread_id: str, previous: Any, at: Instant, run_id: str) -> None:
    """A completed run behind the head, which carries state and meta on."""
    agent = connection.execute(_THREAD, {"ns": ns, "thread": thread_id}).one().agent
    values = {
        "namespace": ns,
        "id": run_id,
        "thread_id": thread_id,
        "agent": agent,
        "previous_run_id": None if previous is None else previous.id,
        "status": RunStatus.COMPLETED.value,
        "end_reason": EndReason.DONE.value,
        "state": None if previous is None else previous.state,
        "meta": None if previous is None else previous.meta,
        "created_at": format_millis(at),
        "ended_at": format_millis(at),
    }
    insert_run(connection, values)
