"""Threads: making, listing, changing and deleting them, and what stands at their heads."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, tuple_, update

from app.clock import Instant, format_millis
from app.errors import Conflict, ThreadBusy
from app.store.adapter import (
    HeadRecord,
    Keep,
    ThreadAttributes,
    ThreadPage,
    ThreadPatch,
    ThreadQuery,
    ThreadRecord,
)
from app.store.cursors import check_limit, read_thread_cursor, write_thread_cursor
from app.store.database import SqlPart
from app.store.lineage import BATCH, batches, walk
from app.store.records import (
    IS_RUNNING,
    OF_THREAD,
    RUNS,
    THIS_RUN,
    THIS_THREAD,
    THREADS,
    read_run,
    read_thread,
)
from app.store.tables import entries, runs, threads
from app.store.thread_rows import hold_thread, make_thread

_THREAD = THREADS.where(THIS_THREAD)
_RUN = RUNS.where(THIS_RUN)
_RUNNING = select(runs.c.id).where(OF_THREAD, IS_RUNNING)
_PLACES = select(entries.c.entry_id, entries.c.run_id).where(
    entries.c.namespace == bindparam("ns"),
    entries.c.thread_id == bindparam("thread"),
    entries.c.entry_id.in_(bindparam("asked", expanding=True)),
)
_CHILDREN = (
    select(threads.c.id)
    .where(
        threads.c.namespace == bindparam("ns"),
        threads.c.parent_thread_id == bindparam("thread"),
        threads.c.hidden,
    )
    .with_for_update()
)


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

    async def delete_thread(self, namespace: str, thread_id: str) -> bool:
        return await self._database.write(partial(_delete, ns=namespace, thread_id=thread_id))

    async def head(self, namespace: str, thread_id: str, entry_ids: Sequence[str]) -> HeadRecord:
        return await self._database.read(partial(_head, ns=namespace, thread_id=thread_id, asked=entry_ids))


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


def _delete(connection: Connection, ns: str, thread_id: str) -> bool:
    """Holds every thread before it looks for live runs, so that none begins in between."""
    family = _family(connection, ns, thread_id)
    for member in family:
        live = connection.execute(_RUNNING, {"ns": ns, "thread": member}).scalar()
        if live is not None:
            raise ThreadBusy(member, live)
    for batch in batches(family):
        for table in (entries, runs):
            connection.execute(delete(table).where(table.c.namespace == ns, table.c.thread_id.in_(batch)))
        connection.execute(delete(threads).where(threads.c.namespace == ns, threads.c.id.in_(batch)))
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


def _head(connection: Connection, ns: str, thread_id: str, asked: Sequence[str]) -> HeadRecord:
    thread = _get(connection, ns, thread_id)
    if thread is None or thread.head_run_id is None:
        return HeadRecord(thread, None)
    head = read_run(connection.execute(_RUN, {"ns": ns, "run": thread.head_run_id}).one())
    return HeadRecord(thread, head, _known(connection, ns, thread_id, head.id, asked))


def _known(
    connection: Connection, ns: str, thread_id: str, head_run_id: str, asked: Sequence[str]
) -> dict[str, str]:
    """Where the asked entries stand on the head's branch; an entry in several of its runs, in the newest.

    The branch is followed only as far back as it takes to place all that the thread holds.
    """
    places = _places(connection, ns, thread_id, asked)
    open_ids = set(places)
    known: dict[str, str] = {}
    run_id: str | None = head_run_id
    while run_id is not None and open_ids:
        chain = walk(connection, ns, run_id, BATCH + 1)
        depth = {passed: at for at, passed in enumerate(chain[:BATCH])}
        for entry_id in list(open_ids):
            on_branch = [place for place in places[entry_id] if place in depth]
            if on_branch:
                known[entry_id] = min(on_branch, key=depth.__getitem__)
                open_ids.discard(entry_id)
        run_id = chain[BATCH] if len(chain) > BATCH else None
    return known


def _places(connection: Connection, ns: str, thread_id: str, asked: Sequence[str]) -> dict[str, list[str]]:
    """The runs of the thread, on any branch, that hold each of the asked entries."""
    places: dict[str, list[str]] = {}
    for lot in batches(asked):
        place = {"ns": ns, "thread": thread_id, "asked": lot}
        for entry_id, run_id in connection.execute(_PLACES, place):
            places.setdefault(entry_id, []).append(run_id)
    return places
