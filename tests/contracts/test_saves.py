"""Saving run by run, as somebody else's adapter would have to."""

import asyncio
from typing import Any

import pytest

from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.messages import Injected, user_message
from app.conversation.outcomes import RunStatus
from app.errors import Conflict, NotFound
from app.store.sql import SqlStore
from tests.contracts.turns import NOON, NS, SECOND, answered, asked, claim_of, ids, said, save_of, turn


@pytest.mark.requirement("HIS-07", "HIS-04")
async def test_the_first_save_makes_the_thread_and_a_completed_run(store: SqlStore):
    await store.save(save_of("r1", asked("r1"), meta={"a": 1}, group_id="g", hidden=True))
    run = await store.get_run(NS, "t", "r1")
    thread = await store.get_thread(NS, "t")
    assert run is not None
    assert thread is not None
    assert (run.status, run.meta, run.previous_run_id) == (RunStatus.COMPLETED, {"a": 1}, None)
    assert (thread.group_id, thread.hidden, thread.head_run_id) == ("g", True, "r1")
    assert (thread.run_count, thread.message_count) == (1, 1)


@pytest.mark.requirement("HIS-07")
async def test_saving_again_appends_and_leaves_all_else_alone(store: SqlStore):
    await store.save(save_of("r1", asked("r1"), meta={"a": 1}))
    later: dict[str, Any] = {
        "created_at": NOON + SECOND,
        "conversation_id": "other",
        "group_id": "other",
        "hidden": True,
    }
    await store.save(save_of("r1", answered("r1"), agent="other", **later))
    (row,) = await store.load(NS, "t")
    assert (ids(row.entries), row.meta, row.created_at) == (["r1-q", "r1-a"], {"a": 1}, NOON)
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert (thread.conversation_id, thread.group_id, thread.hidden) == ("c1", "default", False)
    assert (thread.created_at, thread.updated_at) == (NOON, NOON + SECOND)


@pytest.mark.requirement("HIS-07")
async def test_meta_is_replaced_even_without_a_new_message(store: SqlStore):
    await store.save(save_of("r1", asked("r1"), meta={"a": 1}))
    await store.save(save_of("r1", meta={}))
    (row,) = await store.load(NS, "t")
    assert (row.meta, len(row.entries)) == ({}, 1)


@pytest.mark.requirement("HIS-07")
async def test_a_run_never_moves_to_another_thread(store: SqlStore):
    await store.save(save_of("r1", asked("r1")))
    with pytest.raises(Conflict):
        await store.save(save_of("r1", answered("r1"), thread_id="other"))
    assert await store.get_thread(NS, "other") is None
    assert len(await store.run_entries(NS, "r1")) == 1


@pytest.mark.requirement("HIS-07")
async def test_an_entry_that_is_stored_already_is_refused_with_the_whole_save(store: SqlStore):
    await store.save(save_of("r1", asked("r1")))
    with pytest.raises(Conflict):
        await store.save(save_of("r1", answered("r1"), asked("r1"), meta={"new": True}))
    (row,) = await store.load(NS, "t")
    assert (ids(row.entries), row.meta) == (["r1-q"], None)


@pytest.mark.requirement("HIS-05")
async def test_the_previous_run_is_the_head_or_the_one_named(store: SqlStore):
    for run_id in ("r1", "r2"):
        await store.save(save_of(run_id, asked(run_id)))
    await store.save(save_of("b1", asked("b1"), previous_run_id="r1"))
    await store.save(save_of("b2", asked("b2")))
    previous = {run.id: run.previous_run_id for run in await store.runs(NS, "t")}
    assert previous == {"r1": None, "r2": "r1", "b1": "r1", "b2": "b1"}
    await store.save(save_of("b1", answered("b1"), previous_run_id="r2"))
    assert [run for run, _ in said(await store.load(NS, "t"))] == ["r1", "b1", "b2"]


@pytest.mark.requirement("HIS-05")
async def test_an_unknown_previous_run_is_an_error_and_nothing_is_stored(store: SqlStore):
    await turn(store, "elsewhere", thread_id="other")
    for previous in ("unknown", "elsewhere"):
        with pytest.raises(NotFound):
            await store.save(save_of("r1", asked("r1"), previous_run_id=previous))
    assert await store.get_thread(NS, "t") is None


@pytest.mark.requirement("HIS-13")
async def test_of_concurrent_first_saves_of_one_run_id_one_row_results(store: SqlStore):
    barrier = asyncio.Barrier(20)

    async def save(n: int) -> None:
        await barrier.wait()
        await store.save(save_of("r1", user_message(f"{n}", id=f"m{n}")))

    await asyncio.gather(*(save(n) for n in range(20)))
    assert [run.id for run in await store.runs(NS, "t")] == ["r1"]
    assert sorted(ids([row.entry for row in await store.run_entries(NS, "r1")])) == sorted(
        f"m{n}" for n in range(20)
    )
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert (thread.run_count, thread.message_count) == (1, 20)


@pytest.mark.requirement("HIS-13")
async def test_concurrent_saves_of_many_runs_make_one_branch(store: SqlStore):
    await asyncio.gather(*(store.save(save_of(f"r{n}", asked(f"r{n}"))) for n in range(20)))
    rows = await store.load(NS, "t")
    assert len(rows) == 20
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert (thread.run_count, thread.message_count) == (20, 20)


async def test_a_save_drops_what_is_ephemeral_and_keeps_records(store: SqlStore):
    record = CustomEntry(name="n", value={"a": "b"})
    passing = MessageEntry(user_message("gone", injected=Injected.EPHEMERAL))
    await store.save(save_of("r1", entries=[passing, record]))
    assert [row.entry for row in await store.run_entries(NS, "r1")] == [record]


async def test_saved_runs_hold_no_thread_and_carry_the_state_on(store: SqlStore):
    await store.claim(claim_of("r1", state={"a": 1}))
    await store.save(save_of("r1", answered("r1")))
    assert [run.id for _, run in await store.live_runs()] == ["r1"]
    await store.save(save_of("r2", asked("r2")))
    run = await store.get_run(NS, "t", "r2")
    assert run is not None
    assert run.state == {"a": 1}
    assert [run.id for _, run in await store.live_runs()] == ["r1"]


@pytest.mark.requirement("HIS-17")
async def test_counts_are_right_when_saves_to_old_and_new_runs_meet(store: SqlStore):
    for thread_id in ("a", "b"):
        await store.save(save_of(f"{thread_id}1", asked("x"), thread_id=thread_id))

    async def add(n: int) -> None:
        for thread_id in ("a", "b") if n % 2 else ("b", "a"):
            await store.save(save_of(f"{thread_id}1", asked(f"{n}"), thread_id=thread_id))
            await store.save(save_of(f"{thread_id}-{n}", asked("y"), thread_id=thread_id))

    await asyncio.gather(*(add(n) for n in range(15)))
    for thread_id in ("a", "b"):
        assert len(await store.load(NS, thread_id)) == 16
        thread = await store.get_thread(NS, thread_id)
        assert thread is not None
        assert (thread.run_count, thread.message_count) == (16, 31)
