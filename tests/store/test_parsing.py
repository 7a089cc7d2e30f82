"""Where stored words are made into records: a long history never on the loop, which all followers share."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

import pytest

from app.conversation.entries import StoredEntry
from app.conversation.messages import assistant_message
from app.conversation.recall import EVERYTHING
from app.store import bodies, engine, hydration, recall, transcript
from app.store.opening import migrate, open_store
from app.store.sql import SqlStore
from tests.contracts.turns import NS, asked, claim_of, new
from tests.store.long_thread import write_thread

Read = Callable[[SqlStore], Awaitable[object]]


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with a long thread `long`."""
    write = partial(write_thread, thread_id="long", turns=300)
    if request.param == "postgresql":
        postgres_url: str = request.getfixturevalue("postgres_url")
        pool = engine.postgres(postgres_url)
        async with pool.begin() as connection:
            await connection.run_sync(write)
        await pool.dispose()
        return postgres_url
    await migrate("", tmp_path)
    sqlite = engine.sqlite_writer(tmp_path / "verbatim.db")
    with sqlite.begin() as connection:
        write(connection)
    sqlite.dispose()
    return ""


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> set[Thread]:
    """The threads that have parsed entries."""
    threads: set[Thread] = set()

    def read_entry(row: Any) -> StoredEntry:
        threads.add(current_thread())
        return bodies.read_entry(row)

    for reader in (transcript, hydration, recall):
        monkeypatch.setattr(reader, "read_entry", read_entry)
    return threads


async def load(store: SqlStore) -> object:
    return await store.load(NS, "long")


async def whole_transcript(store: SqlStore) -> object:
    return await store.transcript(NS, "long")


async def large_page(store: SqlStore) -> object:
    return await store.transcript_page(NS, "long", limit=200)


async def messages(store: SqlStore) -> object:
    return await store.messages(NS, "long", renderer=2)


async def past_of_a_run(store: SqlStore) -> object:
    return await store.recall(NS, "long-299", EVERYTHING)


async def wordy_run(store: SqlStore) -> object:
    return await store.run_entries(NS, "wordy")


READS = [load, whole_transcript, large_page, messages, past_of_a_run, wordy_run]


@pytest.mark.parametrize("read", READS)
async def test_a_long_history_is_parsed_outside_the_loop(
    url: str, tmp_path: Path, parsers: set[Thread], read: Read
):
    store = await open_store(url, tmp_path)
    await store.claim(claim_of("wordy", asked("wordy"), thread_id="w"))
    await store.append(NS, "wordy", new(assistant_message("word " * 500_000)))
    assert await read(store)
    assert parsers
    assert current_thread() not in parsers
    await store.close()


async def test_a_short_page_needs_no_other_thread(url: str, tmp_path: Path, parsers: set[Thread]):
    store = await open_store(url, tmp_path)
    page = await store.transcript_page(NS, "long", limit=3)
    assert [len(row.entries) for row in page.rows] == [2, 2, 2]
    assert parsers == {current_thread()}
    await store.close()
