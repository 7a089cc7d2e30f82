"""Deletion of threads. What another thread of the conversation still reaches stays under a tombstone."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from app.clock import Instant, format_millis
from app.errors import ThreadBusy
from app.store.database import SqlPart
from app.store.lineage import batches
from app.store.records import IS_RUNNING, NOT_DELETED, OF_THREAD
from app.store.tables import entries, runs, threads
from app.store.thread_rows import hold_conversation, hold_thread

_RUNNING = select(runs.c.id).where(OF_THREAD, IS_RUNNING)
_CHILDREN = (
    select(threads.c.id)
    .where(
        threads.c.namespace == bindparam("ns"),
        threads.c.parent_thread_id == bindparam("thread"),
        threads.c.hidden,
        NOT_DELETED,
    )
    .with_for_update()
)
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_THREADS = threads.c.namespace == bindparam("ns"), threads.c.id.in_(_IDS)
_SHARED = select(threads.c.id, threads.c.conversation_id).where(*_THREADS, threads.c.shared)
_LINKS = select(runs.c.id, runs.c.thread_id, runs.c.previous_run_id).where(
    runs.c.namespace == bindparam("ns"), runs.c.thread_id.in_(_IDS)
)
_CLEAR = [
    delete(table).where(table.c.namespace == bindparam("ns"), table.c.thread_id.in_(_IDS))
    for table in (entries, runs)
]
_FORGET = [
    delete(entries).where(entries.c.namespace == bindparam("ns"), entries.c.run_id.in_(_IDS)),
    delete(runs).where(runs.c.namespace == bindparam("ns"), runs.c.id.in_(_IDS)),
]
_REMOVE = delete(threads).where(*_THREADS)
_BURY = (
    update(threads)
    .where(*_THREADS, NOT_DELETED)
    .values(deleted_at=bindparam("at"), head_run_id=None, title=None, run_count=0, message_count=0)
)


class Deletions(SqlPart):
    """Takes threads away."""

    async def delete_thread(self, namespace: str, thread_id: str, at: Instant) -> bool:
        return await self._database.write(partial(_delete, ns=namespace, thread_id=thread_id, at=at))


def _delete(connection: Connection, ns: str, thread_id: str, at: Instant) -> bool:
    """Holds every thread before it looks for live runs, so that none begins in between."""
    family = _family(connection, ns, thread_id)
    for member in family:
        live = connection.execute(_RUNNING, {"ns": ns, "thread": member}).scalar()
        if live is not None:
            raise ThreadBusy(member, live)
    together: dict[str, list[str]] = {}
    for lot in batches(family):
        for member, conversation in connection.execute(_SHARED, {"ns": ns, "ids": lot}):
            together.setdefault(conversation, []).append(member)
    for members in together.values():
        _part(connection, ns, members, at)
    shared = {member for members in together.values() for member in members}
    alone = [member for member in family if member not in shared]
    _execute(connection, (*_CLEAR, _REMOVE), ns, alone)
    return bool(family)


def _family(connection: Connection, ns: str, thread_id: str) -> list[str]:
    """The thread and the hidden ones below it, each held; empty for an unknown thread."""
    found, _ = hold_thread(connection, ns, thread_id)
    if not found:
        return []
    family = [thread_id]
    for parent in family:  # grows as it goes
        children = connection.execute(_CHILDREN, {"ns": ns, "thread": parent}).scalars().all()
        family += [child for child in children if child not in family]
    return family


def _part(connection: Connection, ns: str, members: Sequence[str], at: Instant) -> None:
    """Takes some threads out of a conversation, with all that nobody reaches without them, of earlier
    deletions too. The others are held: no branch of theirs begins anywhere else meanwhile."""
    together = hold_conversation(connection, ns, members[0])
    staying = [row for row in together if row.deleted_at is None and row.id not in members]
    ids = {row.id for row in staying}
    leaving = [row.id for row in together if row.id not in ids]
    links = _links(connection, ns, leaving)
    starts = [row.previous_run_id for row in _links(connection, ns, [*ids])]
    kept = _reached(links, [*starts, *(row.head_run_id for row in staying)])
    _execute(connection, _FORGET, ns, [row.id for row in links if row.id not in kept])
    buried = {row.thread_id for row in links if row.id in kept}
    for lot in batches([*buried]):
        connection.execute(_BURY, {"ns": ns, "ids": lot, "at": format_millis(at)})
    _execute(connection, (_REMOVE,), ns, [thread_id for thread_id in leaving if thread_id not in buried])


def _links(connection: Connection, ns: str, thread_ids: Sequence[str]) -> list[Any]:
    return [row for lot in batches(thread_ids) for row in connection.execute(_LINKS, {"ns": ns, "ids": lot})]


def _reached(links: Sequence[Any], starts: Iterable[str | None]) -> set[str]:
    """Which of the linked runs are reached by going back from any of the starts."""
    previous = {row.id: row.previous_run_id for row in links}
    reached: set[str] = set()
    for start in starts:
        run_id = start
        while run_id is not None and run_id in previous and run_id not in reached:
            reached.add(run_id)
            run_id = previous[run_id]
    return reached


def _execute(connection: Connection, statements: Iterable[Any], ns: str, ids: Sequence[str]) -> None:
    for lot in batches(ids):
        for statement in statements:
            connection.execute(statement, {"ns": ns, "ids": lot})
