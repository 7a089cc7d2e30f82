"""A thread that begins where another stands. Nothing is copied: both reach the same runs."""

from dataclasses import replace
from functools import partial

from sqlalchemy import Connection, bindparam, select, update

from app.conversation.outcomes import RunStatus
from app.errors import Conflict, NotFound, ThreadBusy
from app.store.adapter import ThreadAttributes, ThreadRecord
from app.store.database import SqlPart
from app.store.lineage import require_run
from app.store.records import THIS_RUN, THIS_THREAD, THREADS, read_thread
from app.store.tables import runs, threads
from app.store.thread_rows import count_branch, hold_conversation, make_thread, mark_shared

_THREAD = THREADS.where(THIS_THREAD)
_STATUS = select(runs.c.thread_id, runs.c.status).where(THIS_RUN)
_LEAD = update(threads).where(THIS_THREAD).values(head_run_id=bindparam("run"))


class Forks(SqlPart):
    """Makes threads out of others."""

    async def fork_thread(
        self,
        namespace: str,
        thread_id: str,
        new_thread_id: str,
        thread: ThreadAttributes,
        *,
        run_id: str | None = None,
        title: str | None = None,
    ) -> ThreadRecord:
        unit = partial(
            _fork,
            ns=namespace,
            thread_id=thread_id,
            new_id=new_thread_id,
            thread=thread,
            run_id=run_id,
            title=title,
        )
        return await self._database.write(unit)


def _fork(
    connection: Connection,
    ns: str,
    thread_id: str,
    new_id: str,
    thread: ThreadAttributes,
    run_id: str | None,
    title: str | None,
) -> ThreadRecord:
    """Holds all threads of the conversation, so that no run of it is deleted and no words are added to one
    unseen meanwhile."""
    hold_conversation(connection, ns, thread_id)
    old = _thread(connection, ns, thread_id)
    if old is None:
        raise NotFound(f"There is no thread {thread_id}.")
    head = old.head_run_id if run_id is None else require_run(connection, ns, thread_id, run_id).run_id
    if head is not None:
        _refuse_live(connection, ns, head)
    made = replace(thread, agent=old.agent, conversation_id=old.conversation_id)
    if not make_thread(connection, ns, new_id, made, old.title if title is None else title):
        raise Conflict(f"Thread {new_id} exists already.", field="threadId")
    connection.execute(_LEAD, {"ns": ns, "thread": new_id, "run": head})
    mark_shared(connection, ns, thread_id, new_id)
    count_branch(connection, ns, new_id)
    record = _thread(connection, ns, new_id)
    assert record is not None
    return record


def _thread(connection: Connection, ns: str, thread_id: str) -> ThreadRecord | None:
    row = connection.execute(_THREAD, {"ns": ns, "thread": thread_id}).first()
    return None if row is None else read_thread(row)


def _refuse_live(connection: Connection, ns: str, head: str) -> None:
    """What a live run still says would change the past of the new thread."""
    run = connection.execute(_STATUS, {"ns": ns, "run": head}).one()
    if run.status == RunStatus.RUNNING.value:
        raise ThreadBusy(run.thread_id, head)
