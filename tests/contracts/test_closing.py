"""The end of a store, and what the next one finds."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.conversation.recall import EVERYTHING
from app.errors import StoreClosed
from app.store.adapter import Store, ThreadPatch, ThreadQuery
from app.store.opening import migrate, open_store
from tests.contracts.turns import DONE, NOON, NS, asked, attributes, claim_of, new, save_of, turn


@pytest.mark.requirement("HIS-22")
async def test_every_call_after_close_says_that_the_store_is_closed(database_url: str, tmp_path: Path):
    store: Store = await open_store(database_url, tmp_path)
    await store.close()
    await store.close()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.save(save_of("r1")),
        lambda: store.load(NS, "t"),
        lambda: store.list_threads(NS, ThreadQuery()),
        lambda: store.transcript(NS, "t"),
        lambda: store.transcript_page(NS, "t"),
        lambda: store.claim(claim_of("r1")),
        lambda: store.append(NS, "r1", new(asked("r1"))),
        lambda: store.finish(NS, "r1", DONE, NOON),
        store.live_runs,
        lambda: store.create_thread(NS, "t", attributes()),
        lambda: store.get_thread(NS, "t"),
        lambda: store.patch_thread(NS, "t", ThreadPatch(title="x"), NOON),
        lambda: store.delete_thread(NS, "t", NOON),
        lambda: store.head(NS, "t", []),
        lambda: store.get_run(NS, "t", "r1"),
        lambda: store.runs(NS, "t"),
        lambda: store.run_entries(NS, "r1"),
        lambda: store.messages(NS, "t", renderer=1),
        lambda: store.recall(NS, "r1", EVERYTHING),
        lambda: store.fork_thread(NS, "t", "f", attributes()),
        lambda: store.add_records(NS, "t", (), NOON, run_id="r1"),
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            await call()
    await store.close()


@pytest.mark.requirement("HIS-22")
async def test_what_was_asked_before_close_is_done(database_url: str, tmp_path: Path):
    store = await open_store(database_url, tmp_path)
    asked_before = [asyncio.create_task(store.claim(claim_of(f"r{n}", thread_id=f"t{n}"))) for n in range(10)]
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    assert [run.id for run in await asyncio.gather(*asked_before)] == [f"r{n}" for n in range(10)]


async def test_a_cancelled_caller_leaves_its_unit_whole(database_url: str, tmp_path: Path):
    store = await open_store(database_url, tmp_path)
    calls = [asyncio.create_task(turn(store, f"r{n}", thread_id=f"t{n}")) for n in range(10)]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    for n in range(10):
        assert [len(row.entries) for row in await store.transcript(NS, f"t{n}")] in ([], [1])
    await store.close()


@pytest.mark.requirement("HIS-02", "HIS-18")
async def test_migrating_twice_changes_nothing(database_url: str, tmp_path: Path):
    first = await migrate(database_url, tmp_path)
    assert await migrate(database_url, tmp_path) == first
    store = await open_store(database_url, tmp_path)
    await turn(store, "r1")
    await store.close()
