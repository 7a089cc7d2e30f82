"""Runs that continue from an earlier place, and runs that take a paused one up again: on every database, and
over somebody's own storage."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.interrupts import Interrupt
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from app.conversation.recall import EVERYTHING
from app.errors import AlreadyResumed, Conflict, HeadMoved, NotFound, RunExists, ThreadBusy
from app.store.adapter import Keep, NewEntry, Store
from app.store.opening import open_store
from tests.contracts.branches import ASKING, QUESTION, branch, run, words
from tests.contracts.conftest import BACK_ENDS
from tests.contracts.somebodys_store import Everything, SomebodysStore
from tests.contracts.test_foreign_stores import over
from tests.contracts.turns import DONE, NOON, NS, attributes, claim_of, ids, new


@pytest.fixture(params=[*BACK_ENDS, "somebodys", "somebodys-everything"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of each kind."""
    if request.param.startswith("somebodys"):
        yield over(SomebodysStore() if request.param == "somebodys" else Everything())
        return
    urls = {"sqlite-file": f"sqlite:///{tmp_path / 'store.db'}", "sqlite-memory": "sqlite://"}
    url = urls.get(request.param) or request.getfixturevalue("postgres_url")
    opened = await open_store(url, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def told(store: Store) -> Store:
    """A thread of three turns; the second has two questions."""
    await run(store, "r1", "1-q", "1-a")
    await run(store, "r2", "2-q", "2-a", "2b-q", "2b-a")
    await run(store, "r3", "3-q", "3-a")
    return store


@pytest.mark.requirement("HIS-05", "HIS-10", "HIS-11")
async def test_a_run_continues_from_the_one_it_names(told: Store):
    first = await told.claim(claim_of("b1", words("b1-q"), previous_run_id="r1"))
    assert (first.previous_run_id, first.branch_after_entry) == ("r1", None)
    assert ids(await told.recall(NS, "b1", EVERYTHING)) == ["1-q", "1-a"]
    await told.finish(NS, "b1", DONE, NOON, entries=new(words("b1-a")))
    await run(told, "b2", "b2-q")
    assert await branch(told) == ["1-q", "1-a", "b1-q", "b1-a", "b2-q"]
    assert await branch(told, run_id="r3") == ["1-q", "1-a", "2-q", "2-a", "2b-q", "2b-a", "3-q", "3-a"]


@pytest.mark.requirement("HIS-05", "HIS-10", "HIS-11")
async def test_a_run_that_begins_inside_another_leaves_the_rest_of_it_to_its_own_branch(told: Store):
    first = await told.claim(claim_of("b1", words("b1-q"), previous_run_id="r2", branch_after_entry="2-a"))
    assert first.branch_after_entry == "2-a"
    assert await told.get_run(NS, "t", "b1") == first
    assert ids(await told.recall(NS, "b1", EVERYTHING)) == ["1-q", "1-a", "2-q", "2-a"]
    await told.finish(NS, "b1", DONE, NOON, entries=new(words("b1-a")))
    await run(told, "b2", "b2-q")
    assert await branch(told) == ["1-q", "1-a", "2-q", "2-a", "b1-q", "b1-a", "b2-q"]
    assert await branch(told, run_id="r3") == ["1-q", "1-a", "2-q", "2-a", "2b-q", "2b-a", "3-q", "3-a"]
    assert await branch(told, run_id="r2") == ["1-q", "1-a", "2-q", "2-a", "2b-q", "2b-a"]
    whole = [name for turn in await told.load(NS, "t") for name in ids(turn.entries)]
    assert whole == await branch(told)


@pytest.mark.requirement("HIS-05")
async def test_the_head_itself_is_cut_by_a_run_that_begins_inside_it(told: Store):
    await run(told, "b1", "b1-q", previous_run_id="r3", branch_after_entry="3-q")
    await run(told, "b2", "b2-q", previous_run_id="b1", branch_after_entry="b1-q")
    whole = ["1-q", "1-a", "2-q", "2-a", "2b-q", "2b-a", "3-q", "b1-q", "b2-q"]
    assert await branch(told) == whole


@pytest.mark.requirement("HIS-05", "HIS-08")
async def test_a_branch_with_nothing_before_it_is_still_of_its_thread(store: Store):
    made = attributes(group_id="g", parent_thread_id="p", hidden=True, agent="first")
    await run(store, "r1", "1-q", "1-a", thread=made, state={"left": 1})
    begun = await store.claim(claim_of("b1", words("b1-q"), previous_run_id=None))
    assert (begun.previous_run_id, begun.state) == (None, None)
    assert await store.recall(NS, "b1", EVERYTHING) == []
    await store.finish(NS, "b1", DONE, NOON, entries=new(words("b1-a")))
    await run(store, "b2", "b2-q")
    assert await branch(store) == ["b1-q", "b1-a", "b2-q"]
    (first, _) = await store.transcript(NS, "t")
    assert first.previous_run_id is None
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert (thread.group_id, thread.parent_thread_id, thread.hidden) == ("g", "p", True)
    assert thread.agent == "first"


@pytest.mark.requirement("HIS-05")
async def test_a_branch_takes_state_and_meta_of_the_run_it_follows(store: Store):
    await run(store, "r1", "1-q", state={"n": 1}, meta={"m": 1})
    await run(store, "r2", "2-q", state={"n": 2}, meta={"m": 2})
    branched = await store.claim(claim_of("b1", previous_run_id="r1"))
    assert (branched.state, branched.meta) == ({"n": 1}, {"m": 1})


@pytest.mark.requirement("HIS-05")
async def test_an_unknown_place_is_an_error_and_nothing_is_stored(told: Store):
    await run(told, "elsewhere", "e-q", thread_id="other")
    before = await branch(told)
    for previous, entry in (
        ("unknown", None),
        ("elsewhere", None),
        ("r1", "2-a"),
        ("r1", "x"),
        (None, "1-q"),
    ):
        with pytest.raises(NotFound):
            await told.claim(claim_of("b1", previous_run_id=previous, branch_after_entry=entry))
    with pytest.raises(NotFound):
        await told.claim(claim_of("b1", thread_id="new", previous_run_id="r1"))
    assert await branch(told) == before
    assert await told.get_run(NS, "t", "b1") is None
    assert await told.get_thread(NS, "new") is None


@pytest.mark.requirement("HIS-05")
async def test_refusals_come_in_one_order(told: Store):
    wrong: dict[str, Any] = {"previous_run_id": "unknown", "expected_head": "r1", "resumes": True}
    with pytest.raises(RunExists):
        await told.claim(claim_of("r1", **wrong))
    with pytest.raises(HeadMoved):
        await told.claim(claim_of("b1", **wrong))
    with pytest.raises(NotFound):
        await told.claim(claim_of("b1", **(wrong | {"expected_head": "r3"})))
    with pytest.raises(AlreadyResumed):
        await told.claim(claim_of("b1", resumes=True))
    await told.claim(claim_of("live"))
    with pytest.raises(ThreadBusy):
        await told.claim(claim_of("b1", **wrong))


@pytest.mark.requirement("HIS-05")
async def test_a_regenerated_message_has_one_id_in_two_runs_of_two_branches(told: Store):
    await run(told, "b1", "2-q", "other-a", previous_run_id="r1")
    assert await branch(told) == ["1-q", "1-a", "2-q", "other-a"]
    assert await branch(told, run_id="r2") == ["1-q", "1-a", "2-q", "2-a", "2b-q", "2b-a"]
    head = await told.head(NS, "t", ["2-q", "1-a"])
    assert head.known == {"2-q": "b1", "1-a": "r1"}
    other = await told.head(NS, "t", ["2-q", "2b-a"], run_id="r2")
    assert other.known == {"2-q": "r2", "2b-a": "r2"}
    assert other.head == await told.get_run(NS, "t", "r2")


@pytest.mark.requirement("HIS-05")
async def test_what_a_branch_cut_away_is_known_all_the_same(told: Store):
    await run(told, "b1", "b1-q", previous_run_id="r3", branch_after_entry="3-q")
    head = await told.head(NS, "t", ["3-q", "3-a", "b1-q", "unknown"])
    assert head.known == {"3-q": "r3", "3-a": "r3", "b1-q": "b1"}


@pytest.mark.requirement("HIS-06")
async def test_a_paused_run_keeps_its_questions_until_one_run_takes_it_up(store: Store):
    await run(store, "r1", "1-q", "1-a", end=ASKING, state={"n": 1})
    paused = await store.get_run(NS, "t", "r1")
    assert paused is not None
    assert (paused.status, paused.resumed_by) == (RunStatus.PAUSED, None)
    assert [Interrupt.model_validate(asked) for asked in paused.interrupts] == [QUESTION]
    taken = await store.claim(claim_of("r2", resumes=True))
    assert (taken.previous_run_id, taken.state) == ("r1", {"n": 1})
    await store.finish(NS, "r2", DONE, NOON)
    paused = await store.get_run(NS, "t", "r1")
    assert paused is not None
    assert (paused.status, paused.resumed_by) == (RunStatus.PAUSED, "r2")
    with pytest.raises(AlreadyResumed) as refused:
        await store.claim(claim_of("r3", previous_run_id="r1", resumes=True))
    assert refused.value.run_id == "r1"
    assert await store.get_run(NS, "t", "r3") is None


@pytest.mark.requirement("HIS-06")
async def test_the_id_of_a_paused_run_resumes_its_branch_though_the_head_is_elsewhere(store: Store):
    await run(store, "r1", "1-q", "1-a")
    await run(store, "r2", "2-q", "2-a", end=ASKING)
    await run(store, "b1", "b-q", previous_run_id="r1")
    assert await branch(store) == ["1-q", "1-a", "b-q"]
    await run(store, "r3", "3-a", previous_run_id="r2", resumes=True)
    assert await branch(store) == ["1-q", "1-a", "2-q", "2-a", "3-a"]


@pytest.mark.requirement("HIS-06")
async def test_of_many_claims_that_resume_one_paused_run_one_wins(store: Store):
    await run(store, "r1", "1-q", end=ASKING)

    async def resume(run_id: str) -> str:
        try:
            await run(store, run_id, f"{run_id}-a", previous_run_id="r1", resumes=True)
        except (ThreadBusy, AlreadyResumed):
            return "refused"
        return "resumed"

    results = Counter(await asyncio.gather(*(resume(f"b{n}") for n in range(10))))
    assert results == Counter({"refused": 9, "resumed": 1})
    assert len(await store.transcript(NS, "t")) == 2


@pytest.mark.requirement("HIS-06", "HIS-09")
async def test_a_refused_resume_leaves_the_paused_run_open(store: Store):
    await run(store, "r1", "1-q", end=ASKING)
    twice = new(words("x-q"), words("x-q"))
    with pytest.raises(Conflict):
        await store.claim(claim_of("r2", entries=twice, resumes=True))
    await store.claim(claim_of("r2", resumes=True))


@pytest.mark.requirement("HIS-09")
async def test_state_is_stored_with_the_entries_that_changed_it(store: Store):
    await store.claim(claim_of("r1", state={"n": 1}))
    await store.append(NS, "r1", new(words("1-a")), state={"n": 2})
    await store.append(NS, "r1", new(words("2-a")))
    found = await store.get_run(NS, "t", "r1")
    assert found is not None
    assert found.state == {"n": 2}
    await store.append(NS, "r1", (), state=None)
    await store.finish(NS, "r1", DONE, NOON)
    found = await store.get_run(NS, "t", "r1")
    assert found is not None
    assert found.state is None
    with pytest.raises(Conflict):
        await store.append(NS, "r1", (), state={"n": 3})


async def test_the_result_of_a_run_is_stored_with_its_end(store: Store):
    result: JsonValue = {"city": "Zürich", "n": [1, None]}
    await run(store, "r1", "1-q", end=RunEnd(EndReason.DONE, result=result))
    found = await store.get_run(NS, "t", "r1")
    assert found is not None
    assert (found.result, found.interrupts) == (result, [])


@pytest.mark.requirement("AGT-11")
@pytest.mark.parametrize("status", ["running", "completed", "paused"])
async def test_records_are_added_to_the_head_run_whatever_its_status(store: Store, status: str):
    if status == "running":
        await store.claim(claim_of("r1", words("1-q")))
    else:
        await run(store, "r1", "1-q", end=ASKING if status == "paused" else DONE)
    record = CustomEntry(name="chart", value={"y": 1}, created_at=NOON, id="record")
    assert await store.add_records(NS, "t", [NewEntry(record)], NOON, run_id="unused") == "r1"
    assert [row.entry for row in await store.run_entries(NS, "r1")][1:] == [record]
    with pytest.raises(Conflict):
        await store.add_records(NS, "t", [NewEntry(record)], NOON, run_id="unused")
    found = await store.get_run(NS, "t", "r1")
    assert found is not None
    assert found.status == status
    with pytest.raises(NotFound):
        await store.add_records(NS, "unknown", [NewEntry(record)], NOON, run_id="unused")
    if status == "running":
        await store.append(NS, "r1", [NewEntry(MessageEntry(words("1-a")))])
        assert ids([row.entry for row in await store.run_entries(NS, "r1")]) == ["1-q", "record", "1-a"]


@pytest.mark.requirement("HIS-10")
async def test_keep_and_the_heads_own_id_mean_the_same(told: Store):
    before: Keep | str
    for number, before in enumerate((Keep(), "x0")):
        await run(told, f"x{number}", f"x{number}-q", previous_run_id=before)
    assert (await branch(told))[-2:] == ["x0-q", "x1-q"]
