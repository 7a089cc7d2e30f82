"""Saving a conversation run by run, as an adapter of storage does it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, select, update

from app.clock import format_millis
from app.conversation import views
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import Conflict, StorageFailed
from app.store.adapter import NewEntry, RunSave, ThreadAttributes
from app.store.bodies import insert_entries
from app.store.database import SqlPart
from app.store.lineage import require_run
from app.store.records import THIS_RUN
from app.store.run_rows import Collision, insert_run
from app.store.tables import runs
from app.store.thread_rows import (
    branch_head,
    grow,
    hold_or_make_thread,
    hold_thread,
    mark_shared,
    move_head,
    touch,
)

_RACES = 5
_HOLD = select(runs.c.thread_id).where(THIS_RUN).with_for_update()
_OWNER = select(runs.c.thread_id).where(THIS_RUN)
_STATE = select(runs.c.state).where(THIS_RUN)
_REPLACE_META = update(runs).where(THIS_RUN)


class Saves(SqlPart):
    """The first save of a run makes it; every later one adds to it."""

    async def save(self, save: RunSave) -> None:
        """Of several first saves of one run, one makes it and the others find it made."""
        for _ in range(_RACES):
            try:
                return await self._database.write(partial(_save, save=save))
            except Collision:
                continue
        raise StorageFailed("The database kept refusing the run.")


def _save(connection: Connection, save: RunSave) -> None:
    run = connection.execute(_HOLD, {"ns": save.namespace, "run": save.run_id}).first()
    if run is None:
        _make(connection, save)
    else:
        _add(connection, save, run)


def _add(connection: Connection, save: RunSave, run: Row[Any]) -> None:
    """Appends, and replaces meta; the rest of the run and its thread stay as they were made."""
    ns, thread_id = save.namespace, save.thread_id
    if run.thread_id != thread_id:
        raise Conflict(f"Run {save.run_id} belongs to another thread.", field="runId")
    if not hold_thread(connection, ns, thread_id)[0]:
        raise Conflict(f"Thread {thread_id} was deleted.", field="threadId")
    shown = insert_entries(connection, ns, thread_id, save.run_id, _new(save))
    if save.meta is not None:
        connection.execute(_REPLACE_META, {"ns": ns, "run": save.run_id, "meta": save.meta})
    grow(connection, ns, thread_id, save.run_id, shown)
    touch(connection, ns, thread_id, save.created_at, _title(save))


def _make(connection: Connection, save: RunSave) -> None:
    """A run that was saved whole holds no thread: it is completed from the start."""
    ns, thread_id = save.namespace, save.thread_id
    head = hold_or_make_thread(connection, ns, thread_id, _attributes(save))
    previous = save.previous_run_id
    if previous is None:
        previous = head
    elif previous != head:
        require_run(connection, ns, thread_id, previous)
        _share(connection, save, previous)
    insert_run(connection, _run_values(connection, save, previous))
    shown = insert_entries(connection, ns, thread_id, save.run_id, _new(save))
    at, title = save.created_at, _title(save)
    if previous == head:
        move_head(connection, ns, thread_id, save.run_id, shown=shown, at=at, title=title)
    else:
        branch_head(connection, ns, thread_id, save.run_id, at=at, title=title)


def _share(connection: Connection, save: RunSave, previous: str) -> None:
    """Notes that the run follows one of another thread, if it does."""
    owner = connection.execute(_OWNER, {"ns": save.namespace, "run": previous}).scalar_one()
    if owner != save.thread_id:
        mark_shared(connection, save.namespace, save.thread_id, owner)


def _attributes(save: RunSave) -> ThreadAttributes:
    return ThreadAttributes(
        agent=save.agent,
        created_at=save.created_at,
        conversation_id=save.conversation_id,
        group_id=save.group_id,
        parent_thread_id=save.parent_thread_id,
        hidden=save.hidden,
    )


def _run_values(connection: Connection, save: RunSave, previous: str | None) -> dict[str, Any]:
    """The columns of the new run. The thread's shared state lives on in it."""
    state = None
    if previous is not None:
        state = connection.execute(_STATE, {"ns": save.namespace, "run": previous}).scalar_one()
    created_at = format_millis(save.created_at)
    return {
        "namespace": save.namespace,
        "id": save.run_id,
        "thread_id": save.thread_id,
        "agent": save.agent,
        "previous_run_id": previous,
        "status": RunStatus.COMPLETED.value,
        "end_reason": EndReason.DONE.value,
        "state": state,
        "meta": save.meta,
        "created_at": created_at,
        "ended_at": created_at,
    }


def _new(save: RunSave) -> Sequence[NewEntry]:
    return [NewEntry(entry) for entry in save.entries]


def _title(save: RunSave) -> str | None:
    return views.title(views.model_view(save.entries))
