"""What only PostgreSQL can do to a store: drop its connections, and give its database to another."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import Conflict, InvalidInput, StorageFailed
from app.store import engine
from app.store.adapter import ThreadQuery
from app.store.opening import open_store
from app.store.postgres import PostgresDatabase, own
from app.store.sql import SqlStore
from tests.contracts.turns import NS, asked, attributes, claim_of, new, turn
from tests.services.postgres import PostgresServer

Drop = Callable[[], None]


async def blocked(task: asyncio.Task[Any], blocker: AsyncConnection) -> None:
    """Waits until the task waits for a lock, or is done without."""
    waiting = "wait_event_type = 'Lock' AND datname = current_database()"
    for _ in range(1000):
        if task.done() or await blocker.scalar(text(f"SELECT 1 FROM pg_stat_activity WHERE {waiting}")):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it neither waits nor ends")


@pytest.fixture
async def store(postgres_url: str, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A store on PostgreSQL."""
    opened = await open_store(postgres_url, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def drop_connections(postgres_server: PostgresServer, postgres_url: str) -> Drop:
    """Ends all connections of the database at the server."""
    name = postgres_url.partition("@/")[2].partition("?")[0]
    others = f"datname = '{name}' AND pid <> pg_backend_pid()"
    return lambda: postgres_server.execute(
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}"
    )


async def test_a_store_goes_on_after_its_connections_were_lost(
    store: SqlStore, drop_connections: Drop, postgres_url: str, tmp_path: Path
):
    await turn(store, "r1")
    await asyncio.to_thread(drop_connections)
    await turn(store, "r2")
    assert [run.id for run in await store.runs(NS, "t")] == ["r1", "r2"]
    with pytest.raises(Exception, match="is in use by verbatim"):
        await open_store(postgres_url, tmp_path)


async def test_a_store_whose_database_was_taken_over_writes_nothing(
    store: SqlStore,
    drop_connections: Drop,
    postgres_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    await turn(store, "r1")
    await asyncio.to_thread(drop_connections)
    async with asyncio.timeout(10):
        successor = await open_store(postgres_url, tmp_path)
    with pytest.raises(StorageFailed, match="taken over") as refused:
        await turn(store, "r2")
    owner = f"verbatim {os.getpid()} on {socket.gethostname()}"[:63]
    assert owner in caplog.text
    assert not {str(os.getpid()), socket.gethostname()} & set(re.findall(r"[\w.-]+", refused.value.public))
    await turn(successor, "r3")
    await successor.close()
    assert [run.id for run in await store.runs(NS, "t")] == ["r1", "r3"]
    await turn(store, "r4")


async def test_units_that_lock_each_other_out_are_all_done(
    store: SqlStore, postgres_url: str, tmp_path: Path
):
    for thread_id in ("a", "b"):
        await store.create_thread(NS, thread_id, attributes(), title="")
    await store.close()
    pool = engine.postgres(postgres_url)
    database = PostgresDatabase(pool, await own(pool))

    def crossing(connection: Connection, order: str) -> None:
        for thread_id in order:
            change = "UPDATE threads SET title = title || :mark WHERE id = :id"
            connection.execute(text(change), {"mark": order[0], "id": thread_id})
            connection.execute(text("SELECT pg_sleep(0.2)"))

    await asyncio.gather(*(database.write(partial(crossing, order=order)) for order in ("ab", "ba")))
    await database.close()
    store = await open_store(postgres_url, tmp_path)
    titles = [thread.title for thread in (await store.list_threads(NS, ThreadQuery())).threads]
    await store.close()
    assert [sorted(title or "") for title in titles] == [["a", "b"], ["a", "b"]]


async def test_nul_in_an_id_or_a_title_is_refused_as_input(store: SqlStore):
    for claim in (claim_of("r1", title="nul \0"), claim_of("r\0")):
        with pytest.raises(InvalidInput):
            await store.claim(claim)


async def test_an_append_waits_for_an_end_that_is_under_way_and_is_refused(
    store: SqlStore, postgres_url: str
):
    await store.claim(claim_of("r1"))
    pool = engine.postgres(postgres_url)
    async with pool.begin() as ending:
        await ending.execute(text("UPDATE runs SET status = 'completed'"))
        append = asyncio.create_task(store.append(NS, "r1", new(asked("r1"))))
        await blocked(append, ending)
    with pytest.raises(Conflict):
        await append
    await pool.dispose()
    assert await store.run_entries(NS, "r1") == []


async def test_a_unit_whose_caller_left_is_still_committed(store: SqlStore, postgres_url: str):
    pool = engine.postgres(postgres_url)
    await store.create_thread(NS, "t", attributes())
    async with pool.begin() as holding:
        await holding.execute(text("SELECT 1 FROM threads FOR UPDATE"))
        claim = asyncio.create_task(store.claim(claim_of("r1")))
        await blocked(claim, holding)
        claim.cancel()
        await asyncio.gather(claim, return_exceptions=True)
        assert claim.cancelled()
    await pool.dispose()
    await store.close()
    store = await open_store(postgres_url, Path())
    assert [run.id for run in await store.runs(NS, "t")] == ["r1"]
    await store.close()
