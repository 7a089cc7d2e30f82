"""The row of a thread: how it is made, held, and kept in step with what is said in it."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, null, select, true, update
from sqlalchemy.dialects import postgresql, sqlite

from app.clock import Instant, format_millis
from app.errors import Conflict
from app.store.adapter import DEFAULT_GROUP, ThreadAttributes
from app.store.branch_entries import count_shown
from app.store.lineage import Stretch, is_whole_on_branch, walk
from app.store.records import NOT_DELETED, THIS_THREAD
from app.store.tables import KEY, threads

_at = bindparam("at", type_=KEY)
_TOUCHED: dict[str, ColumnElement[Any]] = {
    # a clock that was set back does not make a thread older
    "updated_at": case((threads.c.updated_at < _at, _at), else_=threads.c.updated_at),
    "title": func.coalesce(threads.c.title, bindparam("words", type_=threads.c.title.type)),
}
_LED: dict[str, ColumnElement[Any]] = {**_TOUCHED, "head_run_id": bindparam("run"), "archived_at": null()}
_GROWN = threads.c.message_count + bindparam("shown")

_MAKE = {
    "sqlite": sqlite.insert(threads).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(threads).on_conflict_do_nothing(),
}
_HOLD = select(threads.c.head_run_id).where(THIS_THREAD).with_for_update()
_DELETED = select(threads.c.id).where(
    threads.c.namespace == bindparam("ns"), threads.c.id == bindparam("thread"), ~NOT_DELETED
)
_CONVERSATION_OF = (
    select(threads.c.conversation_id)
    .where(threads.c.namespace == bindparam("ns"), threads.c.id == bindparam("thread"))
    .scalar_subquery()
)
_all = threads.alias("other")
_TOGETHER = (
    select(_all.c.id, _all.c.head_run_id, _all.c.deleted_at)
    .where(_all.c.namespace == bindparam("ns"), _all.c.conversation_id == _CONVERSATION_OF)
    .order_by(_all.c.id)
)
_HOLD_TOGETHER = _TOGETHER.with_for_update(of=_all)
_SHARE = (
    update(threads)
    .where(threads.c.namespace == bindparam("ns"), threads.c.id.in_(bindparam("ids", expanding=True)))
    .values(shared=true())
)
_TOUCH = update(threads).where(THIS_THREAD).values(_TOUCHED)
_MOVE_HEAD = (
    update(threads)
    .where(THIS_THREAD)
    .values({**_LED, "run_count": threads.c.run_count + 1, "message_count": _GROWN})
)
_BRANCH_HEAD = update(threads).where(THIS_THREAD).values(_LED)
_ADD = update(threads).where(THIS_THREAD).values(message_count=_GROWN)
_GROW = _ADD.where(threads.c.head_run_id == bindparam("run")).returning(threads.c.shared)
_RECOUNT = (
    update(threads)
    .where(THIS_THREAD)
    .values(run_count=bindparam("runs"), message_count=bindparam("messages"))
)


def make_thread(
    connection: Connection, ns: str, thread_id: str, thread: ThreadAttributes, title: str | None = None
) -> bool:
    """Inserts an empty thread. False if there is one already."""
    created_at = format_millis(thread.created_at)
    values = {
        "namespace": ns,
        "id": thread_id,
        "agent": thread.agent,
        "conversation_id": thread.conversation_id,
        "group_id": thread.group_id or DEFAULT_GROUP,
        "parent_thread_id": thread.parent_thread_id,
        "hidden": thread.hidden,
        "title": title,
        "created_at": created_at,
        "updated_at": created_at,
    }
    return connection.execute(_MAKE[connection.dialect.name], values).rowcount == 1


def hold_thread(connection: Connection, ns: str, thread_id: str) -> tuple[bool, str | None]:
    """Keeps others from claiming or deleting the thread until the transaction ends.

    Tells whether there is such a thread, and its head. SQLite has one writer, so there the row needs no lock.
    """
    row = connection.execute(_HOLD, {"ns": ns, "thread": thread_id}).first()
    return (False, None) if row is None else (True, row.head_run_id)


def hold_or_make_thread(
    connection: Connection, ns: str, thread_id: str, thread: ThreadAttributes
) -> str | None:
    """Holds the thread and returns its head; makes it where it does not exist. Looks again where somebody
    else makes it, or deletes it, in between. Conflict if only its tombstone is there."""
    while True:
        found, head = hold_thread(connection, ns, thread_id)
        if found or make_thread(connection, ns, thread_id, thread):
            return head
        if connection.execute(_DELETED, {"ns": ns, "thread": thread_id}).scalar() is not None:
            raise Conflict(f"Thread {thread_id} was deleted; its id cannot be used again.", field="threadId")


def move_head(
    connection: Connection,
    ns: str,
    thread_id: str,
    run_id: str,
    *,
    shown: int,
    at: Instant,
    title: str | None,
) -> None:
    """Makes a run that follows the head the new head. The title is taken where there is none yet; a thread
    that was archived comes back."""
    place = {"ns": ns, "thread": thread_id, "run": run_id}
    connection.execute(_MOVE_HEAD, {**place, "shown": shown, "at": format_millis(at), "words": title})


def branch_head(
    connection: Connection, ns: str, thread_id: str, run_id: str, *, at: Instant, title: str | None
) -> None:
    """Makes a run the new head that begins a branch, and counts that anew."""
    place = {"ns": ns, "thread": thread_id, "run": run_id}
    connection.execute(_BRANCH_HEAD, {**place, "at": format_millis(at), "words": title})
    count_branch(connection, ns, thread_id)


def grow(connection: Connection, ns: str, thread_id: str, run_id: str, shown: int) -> None:
    """Counts messages that were added to a run of the thread, in every thread on whose branch it stands.

    One that was forked meanwhile is not missed: the thread's own row, which a fork holds, tells of it.
    """
    if shown == 0:
        return
    grown = connection.execute(_GROW, {"ns": ns, "thread": thread_id, "run": run_id, "shown": shown}).first()
    if grown is not None and not grown.shared:
        return
    for other in hold_conversation(connection, ns, thread_id):
        if other.id == thread_id and grown is not None:
            continue
        head = None if other.deleted_at is not None else other.head_run_id
        if head is not None and is_whole_on_branch(connection, ns, head, run_id):
            connection.execute(_ADD, {"ns": ns, "thread": other.id, "shown": shown})


def conversation_of(connection: Connection, ns: str, thread_id: str) -> list[Any]:
    """The threads of the thread's conversation, tombstones and itself included: id, head, deletion."""
    return list(connection.execute(_TOGETHER, {"ns": ns, "thread": thread_id}))


def hold_conversation(connection: Connection, ns: str, thread_id: str) -> list[Any]:
    """What `conversation_of` gives, held until the transaction ends."""
    return list(connection.execute(_HOLD_TOGETHER, {"ns": ns, "thread": thread_id}))


def mark_shared(connection: Connection, ns: str, *thread_ids: str) -> None:
    """Notes that runs of one of these threads stand on a branch of another."""
    connection.execute(_SHARE, {"ns": ns, "ids": thread_ids})


def touch(connection: Connection, ns: str, thread_id: str, at: Instant, title: str | None = None) -> None:
    """Notes that something happened in the thread."""
    connection.execute(_TOUCH, {"ns": ns, "thread": thread_id, "at": format_millis(at), "words": title})


def count_branch(connection: Connection, ns: str, thread_id: str) -> None:
    """Counts the runs and messages of the head's branch from what is stored. The thread is held first, so
    that no head is moved between counting and writing the count."""
    _, head = hold_thread(connection, ns, thread_id)
    branch = walk(connection, ns, None if head is None else Stretch(head))
    counts = {"runs": len(branch), "messages": count_shown(connection, ns, branch)}
    connection.execute(_RECOUNT, {"ns": ns, "thread": thread_id, **counts})
