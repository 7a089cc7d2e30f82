"""Threads: making, listing and changing them."""

from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, tuple_, update

from app.clock import Instant, format_millis
from app.errors import Conflict
from app.store.adapter import Keep, ThreadAttributes, ThreadPage, ThreadPatch, ThreadQuery, ThreadRecord
from app.store.cursors import check_limit, read_thread_cursor, write_thread_cursor
from app.store.database import SqlPart
from app.store.records import THIS_THREAD, THREADS, read_thread
from app.store.tables import threads
from app.store.thread_rows import make_thread

_THREAD = THREADS.where(THIS_THREAD)


class Threads(SqlPart):
    """The threads of every namespace."""

    async def create_thread(
        self, namespace: str, thread_id: str, thread: ThreadAttributes, title: str | None = None
    ) -> ThreadRecord:
        return await self._database.write(
            partial(_create, ns=namespace, thread_id=thread_id, thread=thread, title=title)
        )

    async def get_thread(self, namespace: str, thread_id: str) -> ThreadRecord | None:
        return await self._database.read(partial(_get, ns=namespace, thread_id=thread_id))

    async def list_threads(self, namespace: str, query: ThreadQuery) -> ThreadPage:
        check_limit(query.limit)
        place = None if query.cursor is None else read_thread_cursor(namespace, query, query.cursor)
        return await self._database.read(partial(_list, ns=namespace, query=query, place=place))

    async def patch_thread(
        self, namespace: str, thread_id: str, patch: ThreadPatch, at: Instant
    ) -> ThreadRecord | None:
        return await self._database.write(partial(_patch, ns=namespace, thread_id=thread_id, patch=patch))


def _create(
    connection: Connection, ns: str, thread_id: str, thread: ThreadAttributes, title: str | None
) -> ThreadRecord:
    if not make_thread(connection, ns, thread_id, thread, title):
        raise Conflict(f"Thread {thread_id} exists already.", field="threadId")
    record = _get(connection, ns, thread_id)
    assert record is not None
    return record


def _get(connection: Connection, ns: str, thread_id: str) -> ThreadRecord | None:
    row = connection.execute(_THREAD, {"ns": ns, "thread": thread_id}).first()
    return None if row is None else read_thread(row)


def _list(connection: Connection, ns: str, query: ThreadQuery, place: tuple[str, str] | None) -> ThreadPage:
    """One thread more than asked for tells whether there is another page."""
    wanted = THREADS.where(threads.c.namespace == ns, *_filters(query))
    if place is not None:
        wanted = wanted.where(tuple_(threads.c.updated_at, threads.c.id) < tuple_(*place))
    newest_first = wanted.order_by(threads.c.updated_at.desc(), threads.c.id.desc())
    rows = connection.execute(newest_first.limit(query.limit + 1)).all()
    shown = rows[: query.limit]
    cursor = None
    if len(rows) > query.limit:
        cursor = write_thread_cursor(ns, query, shown[-1].updated_at, shown[-1].id)
    return ThreadPage([read_thread(row) for row in shown], cursor)


def _filters(query: ThreadQuery) -> list[ColumnElement[bool]]:
    chosen: list[ColumnElement[bool]] = []
    if not query.include_hidden:
        chosen.append(~threads.c.hidden)
    if query.group_id is not None:
        chosen.append(threads.c.group_id == query.group_id)
    if query.parent_thread_id is not None:
        chosen.append(threads.c.parent_thread_id == query.parent_thread_id)
    if query.agent is not None:
        chosen.append(threads.c.agent == query.agent)
    if query.archived is not None:
        archived = threads.c.archived_at
        chosen.append(archived.is_not(None) if query.archived else archived.is_(None))
    return chosen


def _patch(connection: Connection, ns: str, thread_id: str, patch: ThreadPatch) -> ThreadRecord | None:
    values: dict[str, Any] = {}
    if not isinstance(patch.title, Keep):
        values["title"] = patch.title
    if not isinstance(patch.archived_at, Keep):
        values["archived_at"] = None if patch.archived_at is None else format_millis(patch.archived_at)
    if values:
        connection.execute(update(threads).where(THIS_THREAD).values(values), {"ns": ns, "thread": thread_id})
    return _get(connection, ns, thread_id)
