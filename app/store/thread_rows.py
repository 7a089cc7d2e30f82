"""The row of a thread: how it is made, held, and kept in step with what is said in it."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, null, select, update
from sqlalchemy.dialects import postgresql, sqlite

from app.clock import Instant, format_millis
from app.store.adapter import DEFAULT_GROUP, ThreadAttributes
from app.store.lineage import count_shown, walk
from app.store.records import THIS_THREAD
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
_TOUCH = update(threads).where(THIS_THREAD).values(_TOUCHED)
_MOVE_HEAD = (
    update(threads)
    .where(THIS_THREAD)
    .values({**_LED, "run_count": threads.c.run_count + 1, "message_count": _GROWN})
)
_BRANCH_HEAD = update(threads).where(THIS_THREAD).values(_LED)
_GROW = (
    update(threads).where(THIS_THREAD, threads.c.head_run_id == bindparam("run")).values(message_count=_GROWN)
)
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
    else makes it, or deletes it, in between."""
    while True:
        found, head = hold_thread(connection, ns, thread_id)
        if found or make_thread(connection, ns, thread_id, thread):
            return head


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
    """Makes a run that follows an earlier one the new head, and counts its branch anew."""
    place = {"ns": ns, "thread": thread_id, "run": run_id}
    connection.execute(_BRANCH_HEAD, {**place, "at": format_millis(at), "words": title})
    count_branch(connection, ns, thread_id)


def grow(connection: Connection, ns: str, thread_id: str, run_id: str, shown: int) -> None:
    """Counts messages that were added to a run."""
    if shown == 0:
        return
    place = {"ns": ns, "thread": thread_id, "run": run_id}
    if connection.execute(_GROW, {**place, "shown": shown}).rowcount == 0:
        count_branch(connection, ns, thread_id)


def touch(connection: Connection, ns: str, thread_id: str, at: Instant, title: str | None = None) -> None:
    """Notes that something happened in the thread."""
    connection.execute(_TOUCH, {"ns": ns, "thread": thread_id, "at": format_millis(at), "words": title})


def count_branch(connection: Connection, ns: str, thread_id: str) -> None:
    """Counts the runs and messages of the head's branch from what is stored. The thread is held first, so
    that no head is moved between counting and writing the count."""
    _, head = hold_thread(connection, ns, thread_id)
    branch = walk(connection, ns, head)
    counts = {"runs": len(branch), "messages": count_shown(connection, ns, branch)}
    connection.execute(_RECOUNT, {"ns": ns, "thread": thread_id, **counts})
