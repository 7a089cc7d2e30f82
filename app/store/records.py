"""Threads and runs as rows, and back.

Statements of the store are made once, with parameters: making one costs more than SQLite takes to run it.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, literal_column, select

from app.clock import Instant, format_millis, parse_instant
from app.conversation.outcomes import RunStatus
from app.store.adapter import RunRecord, ThreadRecord
from app.store.tables import KEY, runs, threads

_head = runs.alias("head")
_owner = threads.alias("owner")

NOT_DELETED: ColumnElement[bool] = threads.c.deleted_at.is_(None)
"""Leaves tombstones out."""

THREADS: Select[Any] = (
    select(threads, _head.c.status.label("last_run_status"))
    .select_from(
        threads.outerjoin(
            _head, and_(_head.c.namespace == threads.c.namespace, _head.c.id == threads.c.head_run_id)
        )
    )
    .where(NOT_DELETED)
)
"""Selects what `read_thread` needs."""

RUNS: Select[Any] = select(*(column for column in runs.c if column.name not in ("owner", "branch_after_seq")))
"""Selects what `read_run` needs."""


THIS_THREAD: ColumnElement[bool] = and_(
    threads.c.namespace == bindparam("ns"), threads.c.id == bindparam("thread"), NOT_DELETED
)
"""Finds one row of `threads`, by the parameters `ns` and `thread`; no tombstone."""

THIS_RUN: ColumnElement[bool] = and_(runs.c.namespace == bindparam("ns"), runs.c.id == bindparam("run"))
"""Finds one row of `runs`, by the parameters `ns` and `run`."""

IS_RUNNING: ColumnElement[bool] = runs.c.status == literal_column("'running'", KEY)
"""Narrows to live runs. Spelled out, or the partial index would not be considered."""

OF_THREAD: ColumnElement[bool] = and_(
    runs.c.namespace == bindparam("ns"), runs.c.thread_id == bindparam("thread")
)
"""Finds the runs that were made in a thread, by the parameters `ns` and `thread`. It is not joined with
`THIS_RUN`: a database that takes a thread's runs for few would go through them all to find the one."""

IS_OF_THREAD: ColumnElement[bool] = (
    select(_owner.c.conversation_id)
    .where(_owner.c.namespace == runs.c.namespace, _owner.c.id == runs.c.thread_id)
    .scalar_subquery()
    == select(threads.c.conversation_id).where(THIS_THREAD).scalar_subquery()
)
"""Whether a run is one of the thread's: of its conversation, in whichever thread and on whichever branch."""


def read_time(text: str) -> Instant:
    """The instant of a stored time."""
    instant = parse_instant(text)
    assert instant is not None
    return instant


def stored_instant(instant: Instant) -> Instant:
    """What will be read again of a thread's or a run's time: milliseconds are kept."""
    return read_time(format_millis(instant))


def read_thread(row: Any) -> ThreadRecord:
    """The record of a row of `THREADS`."""
    return ThreadRecord(
        id=row.id,
        agent=row.agent,
        conversation_id=row.conversation_id,
        group_id=row.group_id,
        parent_thread_id=row.parent_thread_id,
        hidden=row.hidden,
        title=row.title,
        archived_at=None if row.archived_at is None else read_time(row.archived_at),
        head_run_id=row.head_run_id,
        run_count=row.run_count,
        message_count=row.message_count,
        last_run_status=None if row.last_run_status is None else RunStatus(row.last_run_status),
        created_at=read_time(row.created_at),
        updated_at=read_time(row.updated_at),
    )


def read_run(row: Any) -> RunRecord:
    """The record of a row of `RUNS`."""
    return RunRecord(
        seq=row.seq,
        id=row.id,
        thread_id=row.thread_id,
        agent=row.agent,
        sender_id=row.sender_id,
        previous_run_id=row.previous_run_id,
        parent_run_id=row.parent_run_id,
        status=RunStatus(row.status),
        end_reason=row.end_reason,
        epoch=row.epoch,
        state=row.state,
        meta=row.meta,
        input=row.input,
        interrupts=row.interrupts,
        usage=row.usage,
        error=row.error,
        digest=row.digest,
        created_at=read_time(row.created_at),
        ended_at=None if row.ended_at is None else read_time(row.ended_at),
        branch_after_entry=row.branch_after_entry,
        resumed_by=row.resumed_by,
        result=row.result,
    )
