"""A claim for the thread as its caller read it: it is refused where the thread went on meanwhile."""

import asyncio
from collections import Counter

import pytest

from app.errors import Conflict, HeadMoved, RunExists, ThreadBusy
from app.store.sql import SqlStore
from tests.contracts.turns import DONE, NOON, NS, asked, attributes, claim_of, save_of, turn


async def test_a_claim_that_expects_the_head_as_it_is_gets_its_run(store: SqlStore):
    await turn(store, "r1", expected_head=None)
    second = await store.claim(claim_of("r2", expected_head="r1"))
    assert second.previous_run_id == "r1"
    await store.create_thread(NS, "empty", attributes())
    await store.claim(claim_of("r3", thread_id="empty", expected_head=None))


async def test_a_claim_for_another_head_is_refused_and_nothing_of_it_is_stored(store: SqlStore):
    await turn(store, "r1")
    await turn(store, "r2")
    before = await store.get_thread(NS, "t")
    for expected in (None, "r1", "unknown"):
        with pytest.raises(HeadMoved) as refused:
            await store.claim(claim_of("r3", asked("r3"), title="x", expected_head=expected))
        assert (refused.value.code, refused.value.status) == ("head_moved", 409)
    assert await store.get_thread(NS, "t") == before
    assert await store.get_run(NS, "t", "r3") is None
    assert await store.run_entries(NS, "r3") == []


async def test_a_thread_that_does_not_exist_has_no_head(store: SqlStore):
    with pytest.raises(HeadMoved):
        await store.claim(claim_of("r1", expected_head="r0"))
    assert await store.get_thread(NS, "t") is None
    await turn(store, "r1", expected_head=None)
    assert await store.delete_thread(NS, "t", NOON)
    with pytest.raises(HeadMoved):
        await store.claim(claim_of("r2", expected_head="r1"))


async def test_a_saved_branch_moves_the_head_too(store: SqlStore):
    await turn(store, "r1")
    await turn(store, "r2")
    await store.save(save_of("r3", asked("r3"), previous_run_id="r1"))
    with pytest.raises(HeadMoved):
        await store.claim(claim_of("r4", expected_head="r2"))
    await store.claim(claim_of("r4", expected_head="r3"))


async def test_a_used_id_and_a_live_run_are_named_before_a_moved_head(store: SqlStore):
    await turn(store, "r1")
    await store.claim(claim_of("r2"))
    with pytest.raises(RunExists):
        await store.claim(claim_of("r1", expected_head=None))
    with pytest.raises(ThreadBusy):
        await store.claim(claim_of("r3", expected_head=None))
    await store.finish(NS, "r2", DONE, NOON)
    with pytest.raises(RunExists):
        await store.claim(claim_of("r1", expected_head=None))


async def test_of_many_turns_that_follow_one_head_one_is_stored(store: SqlStore):
    """Each ends at once, so that most of them find the thread at rest."""
    await turn(store, "r0")
    barrier = asyncio.Barrier(30)

    async def one(run_id: str) -> str:
        await barrier.wait()
        try:
            await turn(store, run_id, expected_head="r0")
        except Conflict as refused:
            return "busy" if isinstance(refused, ThreadBusy) else type(refused).__name__
        return "stored"

    results = Counter(await asyncio.gather(*(one(f"r{n}") for n in range(1, 31))))
    assert results["stored"] == 1
    assert results["busy"] + results["HeadMoved"] == 29
    assert len(await store.runs(NS, "t")) == 2
    with pytest.raises(HeadMoved):
        await store.claim(claim_of("late", expected_head="r0"))
