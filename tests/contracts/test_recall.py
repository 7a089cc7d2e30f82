"""What a run is given of the branch before it."""

import pytest

from app.conversation.messages import Injected, Message, user_message
from app.conversation.recall import EVERYTHING, Recall
from app.errors import NotFound
from app.store.sql import SqlStore
from tests.contracts.branches import words
from tests.contracts.turns import DONE, NOON, NS, attributes, claim_of, ids, new, turn

SUMMARISED = Recall(summarised=True)


def summary(name: str, covers: str) -> Message:
    return user_message(f"summary {name}", id=name, injected=Injected.META, origin="x", covers=covers)


async def recalled(store: SqlStore, recall: Recall, run_id: str = "now") -> list[str]:
    return ids(await store.recall(NS, run_id, recall))


async def told(store: SqlStore, turns: int, *, last: str | None = None) -> None:
    """So many turns of `r<n>-q` and `r<n>-a`, and a live run `now`."""
    for n in range(turns):
        await turn(store, f"r{n}")
    await store.claim(claim_of("now", words("now-q"), previous_run_id=last or f"r{turns - 1}"))


@pytest.mark.requirement("AGT-09")
async def test_without_a_summary_everything_before_the_run_is_given(store: SqlStore):
    await told(store, 20)
    whole = [f"r{n}-{part}" for n in range(20) for part in "qa"]
    assert await recalled(store, EVERYTHING) == whole
    assert await recalled(store, SUMMARISED) == whole
    assert await recalled(store, Recall(), "r0") == []
    with pytest.raises(NotFound):
        await recalled(store, EVERYTHING, "unknown")


@pytest.mark.requirement("AGT-09")
async def test_so_many_of_the_newest_turns_are_given(store: SqlStore):
    await told(store, 5)
    assert await recalled(store, Recall(turns=2)) == ["r3-q", "r3-a", "r4-q", "r4-a"]
    assert len(await recalled(store, Recall(turns=50))) == 10
    assert await recalled(store, Recall(turns=0)) == []


@pytest.mark.requirement("AGT-09")
async def test_a_run_in_which_nobody_was_answered_is_given_beside_the_turns(store: SqlStore):
    for n in range(12):
        await turn(store, f"r{n}")
    await store.claim(claim_of("r12", words("r12-q")))
    await store.finish(NS, "r12", DONE, NOON)
    await store.claim(claim_of("now", words("now-q")))
    assert await recalled(store, Recall(turns=1)) == ["r11-q", "r11-a", "r12-q"]


@pytest.mark.requirement("AGT-09")
@pytest.mark.parametrize("behind", [1, 3, 30])
async def test_what_follows_the_covered_message_is_given_with_the_newest_summary(
    store: SqlStore, behind: int
):
    """The covered message stands inside a run, and the summary some runs later."""
    for n in range(behind + 3):
        await turn(store, f"r{n}")
        if n == 1:
            await store.claim(claim_of("s0", summary("old", "r0-a")))
            await store.finish(NS, "s0", DONE, NOON)
    await store.claim(claim_of("s1", summary("new", "r2-q")))
    await store.finish(NS, "s1", DONE, NOON, entries=new(words("s1-a")))
    await told_more(store, behind)
    expected = ["r2-a", *(f"r{n}-{part}" for n in range(3, behind + 3) for part in "qa"), "new", "s1-a"]
    expected += [f"more{n}-{part}" for n in range(behind) for part in "qa"]
    assert await recalled(store, SUMMARISED) == expected


async def told_more(store: SqlStore, turns: int) -> None:
    for n in range(turns):
        await turn(store, f"more{n}")
    await store.claim(claim_of("now"))


@pytest.mark.requirement("AGT-09")
async def test_of_two_summaries_in_one_run_the_later_counts(store: SqlStore):
    await turn(store, "r0")
    await store.claim(claim_of("r1", summary("old", "r0-q"), words("1-q"), summary("new", "r0-a")))
    await store.finish(NS, "r1", DONE, NOON)
    await store.claim(claim_of("now"))
    assert await recalled(store, SUMMARISED) == ["old", "1-q", "new"]


@pytest.mark.requirement("AGT-09", "HIS-05")
async def test_a_summary_behind_the_cut_of_a_branch_covers_nothing(store: SqlStore):
    await turn(store, "r0")
    await store.claim(claim_of("r1", words("1-q"), summary("s", "r0-a"), words("1-a")))
    await store.finish(NS, "r1", DONE, NOON)
    await store.claim(claim_of("cut", previous_run_id="r1", branch_after_entry="1-q"))
    assert await recalled(store, SUMMARISED, "cut") == ["r0-q", "r0-a", "1-q"]
    await store.finish(NS, "cut", DONE, NOON)
    await store.claim(claim_of("with", previous_run_id="r1", branch_after_entry="s"))
    assert await recalled(store, SUMMARISED, "with") == ["1-q", "s"]


@pytest.mark.requirement("AGT-09", "HIS-08")
async def test_a_fork_inherits_a_summary_only_from_what_it_shares(store: SqlStore):
    await turn(store, "r0")
    await turn(store, "r1")
    await store.claim(claim_of("r2", summary("s", "r0-a")))
    await store.finish(NS, "r2", DONE, NOON)
    for name, run_id in (("with", "r2"), ("without", "r1")):
        await store.fork_thread(NS, "t", name, attributes(), run_id=run_id)
        await store.claim(claim_of(f"of {name}", thread_id=name))
    assert await recalled(store, SUMMARISED, "of with") == ["r1-q", "r1-a", "s"]
    assert await recalled(store, SUMMARISED, "of without") == ["r0-q", "r0-a", "r1-q", "r1-a"]


@pytest.mark.requirement("AGT-09")
async def test_a_summary_of_what_is_not_there_takes_nothing_away(store: SqlStore):
    await turn(store, "r0")
    await store.claim(claim_of("r1", summary("s", "unknown")))
    await store.finish(NS, "r1", DONE, NOON)
    await store.claim(claim_of("now"))
    assert await recalled(store, SUMMARISED) == ["r0-q", "r0-a", "s"]
