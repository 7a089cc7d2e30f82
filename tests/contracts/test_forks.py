"""Threads that share what was said before they parted, and what stays when one of them is deleted."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from app.conversation.entries import CustomEntry
from app.conversation.recall import EVERYTHING
from app.errors import AlreadyResumed, Conflict, NotFound, NotSupported, RunExists, ThreadBusy
from app.store.adapter import NewEntry, ThreadPatch, ThreadQuery, ThreadRecord
from app.store.sql import SqlStore
from tests.contracts.branches import ASKING, branch, run, words
from tests.contracts.somebodys_store import SomebodysStore
from tests.contracts.test_foreign_stores import over
from tests.contracts.turns import DONE, NOON, NS, SECOND, attributes, claim_of, ids, new, save_of

OLD = ["1-q", "1-a", "2-q", "2-a"]


async def fork(store: SqlStore, old: str = "t", name: str = "f", **given: Any) -> ThreadRecord:
    made = attributes(conversation_id="unused", agent="unused", created_at=NOON + SECOND, group_id="g")
    return await store.fork_thread(NS, old, name, made, **given)


@pytest.fixture
async def told(store: SqlStore) -> SqlStore:
    """A thread of two turns."""
    await run(store, "r1", "1-q", "1-a", title="First words")
    await run(store, "r2", "2-q", "2-a", state={"n": 2})
    return store


@pytest.mark.requirement("HIS-08", "HIS-17")
async def test_a_fork_shares_what_was_said_and_copies_nothing(told: SqlStore):
    forked = await fork(told)
    assert (forked.agent, forked.conversation_id, forked.group_id) == ("assistant", "c1", "g")
    assert (forked.head_run_id, forked.run_count, forked.message_count) == ("r2", 2, 4)
    assert (forked.title, forked.created_at) == ("First words", NOON + SECOND)
    assert await branch(told, "f") == OLD == await branch(told)
    assert [found.id for found in await told.runs(NS, "f")] == ["r1", "r2"]
    assert await told.get_run(NS, "f", "r1") == await told.get_run(NS, "t", "r1")


@pytest.mark.requirement("HIS-08")
async def test_forks_and_their_continuations_leave_group_parent_and_hidden_alone(store: SqlStore):
    made = attributes(group_id="g", parent_thread_id="p", hidden=True)
    await run(store, "r1", "1-q", thread=made)
    forked = await store.fork_thread(NS, "t", "f", made)
    other = attributes(group_id="other", agent="other")
    await run(store, "f1", "f1-q", thread_id="f", thread=other)
    await run(store, "b1", "b1-q", thread_id="f", thread=other, previous_run_id="r1")
    for name in ("t", "f"):
        thread = await store.get_thread(NS, name)
        assert thread is not None
        assert (thread.group_id, thread.parent_thread_id, thread.hidden) == ("g", "p", True)
        assert (thread.agent, thread.conversation_id) == (forked.agent, forked.conversation_id)


@pytest.mark.requirement("HIS-05", "HIS-10")
async def test_a_fork_and_its_original_go_their_own_ways(told: SqlStore):
    await fork(told)
    first = await told.claim(claim_of("f1", words("f1-q"), thread_id="f"))
    assert (first.previous_run_id, first.state) == ("r2", {"n": 2})
    assert ids(await told.recall(NS, "f1", EVERYTHING)) == OLD
    await run(told, "r3", "3-q")
    await told.finish(NS, "f1", DONE, NOON, entries=new(words("f1-a")))
    assert await branch(told, "f") == [*OLD, "f1-q", "f1-a"]
    assert await branch(told) == [*OLD, "3-q"]
    assert [found.id for found in await told.runs(NS, "f")] == ["r1", "r2", "f1"]
    assert [found.id for found in await told.runs(NS, "t")] == ["r1", "r2", "r3"]


@pytest.mark.requirement("HIS-05", "HIS-10")
async def test_a_fork_may_begin_earlier_and_branch_inside_a_shared_run(told: SqlStore):
    forked = await fork(told, run_id="r1", title="Another")
    assert (forked.head_run_id, forked.message_count, forked.title) == ("r1", 2, "Another")
    assert await branch(told, "f") == ["1-q", "1-a"]
    await run(told, "f1", "f1-q", thread_id="f", previous_run_id="r1", branch_after_entry="1-q")
    assert await branch(told, "f") == ["1-q", "f1-q"]
    assert await branch(told) == OLD
    await run(told, "f2", "f2-q", thread_id="f", previous_run_id="r2")
    assert await branch(told, "f") == [*OLD, "f2-q"]


@pytest.mark.requirement("HIS-05")
async def test_a_fork_knows_what_any_thread_of_its_conversation_holds(told: SqlStore):
    await fork(told, run_id="r1")
    await run(told, "f1", "2-q", "f1-a", thread_id="f")
    head = await told.head(NS, "f", ["1-q", "2-q", "2-a", "f1-a"])
    assert head.known == {"1-q": "r1", "2-q": "f1", "2-a": "r2", "f1-a": "f1"}
    head = await told.head(NS, "t", ["1-q", "2-q", "2-a", "f1-a"])
    assert head.known == {"1-q": "r1", "2-q": "r2", "2-a": "r2", "f1-a": "f1"}


@pytest.mark.requirement("HIS-08")
async def test_a_fork_of_a_fork_shares_with_both(told: SqlStore):
    await fork(told, name="f")
    await run(told, "f1", "f1-q", thread_id="f")
    await fork(told, old="f", name="g")
    await run(told, "g1", "g1-q", thread_id="g")
    assert await branch(told, "g") == [*OLD, "f1-q", "g1-q"]
    assert await told.delete_thread(NS, "f", NOON)
    assert await branch(told, "g") == [*OLD, "f1-q", "g1-q"]
    assert await told.delete_thread(NS, "t", NOON)
    assert await branch(told, "g") == [*OLD, "f1-q", "g1-q"]
    assert [found.id for found in await told.runs(NS, "g")] == ["r1", "r2", "f1", "g1"]


async def test_what_cannot_be_forked_is_refused(told: SqlStore):
    await run(told, "elsewhere", "e-q", thread_id="other")
    with pytest.raises(NotFound):
        await fork(told, old="unknown")
    for run_id in ("unknown", "elsewhere"):
        with pytest.raises(NotFound):
            await fork(told, run_id=run_id)
    with pytest.raises(Conflict):
        await fork(told, name="other")
    await told.claim(claim_of("live", words("l-q")))
    with pytest.raises(ThreadBusy) as refused:
        await fork(told)
    assert refused.value.run_id == "live"
    await fork(told, run_id="r2")
    with pytest.raises(ThreadBusy):
        await told.claim(claim_of("f1", thread_id="f", previous_run_id="live"))
    with pytest.raises(NotSupported):
        await over(SomebodysStore()).fork_thread(NS, "t", "f", attributes())


async def test_an_empty_thread_has_an_empty_fork(store: SqlStore):
    await store.create_thread(NS, "t", attributes(), "Title")
    forked = await fork(store)
    assert (forked.head_run_id, forked.run_count, forked.title) == (None, 0, "Title")


@pytest.mark.requirement("HIS-17")
async def test_words_added_to_a_shared_run_count_in_every_thread_that_has_it(told: SqlStore):
    await fork(told, name="f")
    await fork(told, name="g", run_id="r1")
    await run(told, "f1", "f1-q", thread_id="f")
    await run(told, "g1", "g1-q", thread_id="g", previous_run_id="r1", branch_after_entry="1-q")
    await told.save(save_of("r2", words("late-a")))
    await told.save(save_of("r1", words("later-a")))
    assert await branch(told) == ["1-q", "1-a", "later-a", "2-q", "2-a", "late-a"]
    assert await branch(told, "f") == ["1-q", "1-a", "later-a", "2-q", "2-a", "late-a", "f1-q"]
    assert await branch(told, "g") == ["1-q", "g1-q"]


@pytest.mark.requirement("HIS-17")
async def test_counts_are_right_when_a_thread_is_forked_while_words_are_added(store: SqlStore):
    await store.save(save_of("r1", words("1-q")))

    async def add(n: int) -> None:
        await store.save(save_of("r1", words(f"{n}-a")))
        if n % 3 == 0:
            await fork(store, name=f"f{n}")

    await asyncio.gather(*(add(n) for n in range(12)))
    for name in ("t", "f0", "f3", "f6", "f9"):
        assert len(await branch(store, name)) == 13


@pytest.mark.requirement("HIS-06")
async def test_of_two_threads_that_share_a_paused_run_one_takes_it_up(store: SqlStore):
    await run(store, "r1", "1-q", end=ASKING)
    await fork(store)

    async def resume(run_id: str, thread_id: str) -> str:
        try:
            await store.claim(claim_of(run_id, thread_id=thread_id, resumes=True))
        except AlreadyResumed:
            return "refused"
        return "resumed"

    results = await asyncio.gather(resume("r2", "t"), resume("f1", "f"))
    assert Counter(results) == Counter({"resumed": 1, "refused": 1})


@pytest.mark.requirement("HIS-08")
async def test_a_deleted_thread_leaves_what_its_fork_reaches_and_nothing_else(told: SqlStore):
    await run(told, "r3", "3-q")
    await fork(told, run_id="r2")
    await run(told, "f1", "f1-q", thread_id="f", previous_run_id="r2", branch_after_entry="2-q")
    assert await told.delete_thread(NS, "t", NOON)
    assert await branch(told, "f") == ["1-q", "1-a", "2-q", "f1-q"]
    assert await told.run_entries(NS, "r3") == []
    assert await told.get_run(NS, "f", "r3") is None
    assert (await told.head(NS, "f", ["3-q", "2-a"])).known == {"2-a": "r2"}


@pytest.mark.requirement("HIS-08")
async def test_nobody_sees_a_thread_that_was_deleted_while_its_fork_lives(told: SqlStore):
    await fork(told)
    assert await told.delete_thread(NS, "t", NOON)
    assert not await told.delete_thread(NS, "t", NOON)
    listing = await told.list_threads(NS, ThreadQuery(include_hidden=True))
    assert [thread.id for thread in listing.threads] == ["f"]
    assert await told.get_thread(NS, "t") is None
    assert await told.get_run(NS, "t", "r1") is None
    assert await told.runs(NS, "t") == []
    assert await told.transcript(NS, "t") == []
    assert (await told.head(NS, "t", ["1-q"])).known == {}
    assert await told.patch_thread(NS, "t", ThreadPatch(title="x"), NOON) is None
    for reading in (told.transcript, told.load):
        with pytest.raises(NotFound):
            await reading(NS, "t", "r1")
    with pytest.raises(NotFound):
        await told.add_records(NS, "t", [], NOON, run_id="x")
    with pytest.raises(NotFound):
        await fork(told, name="g")


@pytest.mark.requirement("HIS-08")
async def test_the_id_of_such_a_thread_is_free_when_the_last_fork_goes(told: SqlStore):
    await fork(told)
    assert await told.delete_thread(NS, "t", NOON)
    attempts = (
        lambda: told.claim(claim_of("r9")),
        lambda: told.create_thread(NS, "t", attributes()),
        lambda: told.save(save_of("r9")),
        lambda: told.save(save_of("r1", words("late-a"))),
        lambda: fork(told, old="f", name="t"),
    )
    for attempt in attempts:
        with pytest.raises(Conflict):
            await attempt()
    with pytest.raises(RunExists):
        await told.claim(claim_of("r1", thread_id="x"))
    assert await told.delete_thread(NS, "f", NOON)
    assert await told.run_entries(NS, "r1") == []
    await run(told, "r1", "1-q")
    assert await branch(told) == ["1-q"]


@pytest.mark.requirement("HIS-08")
async def test_a_branch_off_the_head_keeps_what_it_follows(told: SqlStore):
    """The fork has gone elsewhere since; what was said there is reachable by its run."""
    await fork(told)
    await run(told, "f1", "f1-q", thread_id="f")
    await run(told, "f2", "f2-q", thread_id="f", previous_run_id="r1")
    assert await told.delete_thread(NS, "t", NOON)
    assert await branch(told, "f", run_id="f1") == [*OLD, "f1-q"]
    assert await branch(told, "f") == ["1-q", "1-a", "f2-q"]


@pytest.mark.requirement("AGT-11")
async def test_a_record_added_to_a_fork_does_not_come_into_the_other_thread(told: SqlStore):
    await fork(told)
    record = NewEntry(CustomEntry(name="n", value=1, id="record"))
    assert await told.add_records(NS, "f", [record], NOON, run_id="own") == "own"
    assert await told.add_records(NS, "t", [record], NOON, run_id="mine") == "mine"
    for thread_id in ("t", "f"):
        turns = await told.transcript(NS, thread_id)
        assert [ids(row.entries) for row in turns[1:]] == [["2-q", "2-a"], ["record"]]
    with pytest.raises(Conflict):
        await told.add_records(NS, "t", [record], NOON, run_id="unused")
    made = await told.get_run(NS, "f", "own")
    assert made is not None
    assert (made.status.value, made.previous_run_id, made.state) == ("completed", "r2", {"n": 2})
    await run(told, "f2", "f2-q", thread_id="f")
    assert (await told.get_run(NS, "f", "f2") or made).previous_run_id == "own"


@pytest.mark.requirement("AGT-11")
async def test_a_thread_without_runs_gets_one_for_its_records(store: SqlStore):
    await store.create_thread(NS, "t", attributes(agent="a"))
    record = CustomEntry(name="n", value=1, id="record")
    assert await store.add_records(NS, "t", [NewEntry(record)], NOON + SECOND, run_id="own") == "own"
    made = await store.get_run(NS, "t", "own")
    thread = await store.get_thread(NS, "t")
    assert made is not None
    assert thread is not None
    assert (made.agent, made.status.value, made.ended_at) == ("a", "completed", NOON + SECOND)
    assert (thread.run_count, thread.message_count, thread.updated_at) == (1, 0, NOON + SECOND)
    assert await store.live_runs() == []
    await store.create_thread(NS, "other", attributes(conversation_id="other"))
    with pytest.raises(RunExists):
        await store.add_records(NS, "other", [NewEntry(record)], NOON, run_id="own")
