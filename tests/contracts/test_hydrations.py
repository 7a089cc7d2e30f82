"""A branch as its readers get it: only what they may see, in pages, rendered where it fits."""

import pytest

from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.messages import Injected, user_message
from app.errors import InvalidInput, NotFound
from app.store.adapter import MessagePage, NewEntry
from app.store.sql import SqlStore
from tests.contracts.turns import DONE, NOON, NS, answered, asked, claim_of, new, save_of, turn


def names(page: MessagePage) -> list[str]:
    """The ids of a page's entries."""
    return [row.entry.id for row in page.rows if row.entry is not None]


async def walked(store: SqlStore, limit: int, renderer: int = 1) -> list[str]:
    """All messages of the head's branch, page by page."""
    found: list[str] = []
    before: str | None = None
    while True:
        page = await store.messages(NS, "t", renderer=renderer, limit=limit, before=before)
        assert len(page.rows) <= limit
        found = names(page) + found
        before = page.next_before
        if before is None:
            return found


@pytest.mark.requirement("MSG-06", "MSG-09")
async def test_readers_get_no_injected_message(store: SqlStore):
    aside = user_message("aside", injected=Injected.META)
    await store.claim(claim_of("r1", asked("r1"), aside))
    page = await store.messages(NS, "t", renderer=1)
    assert (names(page), page.next_before) == (["r1-q"], None)


@pytest.mark.requirement("AGT-11")
async def test_records_stand_among_the_messages_and_count_on_a_page_but_not_in_the_thread(store: SqlStore):
    await store.claim(claim_of("r1", asked("r1")))
    records = [CustomEntry(name="chart", value={"n": n}, id=f"record{n}") for n in range(3)]
    await store.append(NS, "r1", [NewEntry(records[0], wire="[]", renderer=1), NewEntry(records[1])])
    await store.finish(NS, "r1", DONE, NOON, entries=[*new(answered("r1")), NewEntry(records[2])])
    expected = ["r1-q", "record0", "record1", "r1-a", "record2"]
    assert names(await store.messages(NS, "t", renderer=2)) == expected
    assert await walked(store, 2, renderer=2) == expected
    _, rendered, bare, _, _ = (await store.messages(NS, "t", renderer=1)).rows
    assert (rendered.wire, rendered.entry) == ("[]", None)
    assert (bare.wire, bare.entry) == (None, records[1])
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert thread.message_count == 2


async def test_a_rendering_is_given_to_the_renderer_that_made_it(store: SqlStore):
    entry = MessageEntry(asked("r1"))
    await store.claim(claim_of("r1", entries=[NewEntry(entry, wire='[{"id":"x"}]', renderer=2)]))
    await store.append(NS, "r1", new(user_message("bare", id="bare")))
    first, second = (await store.messages(NS, "t", renderer=2)).rows
    assert (first.wire, first.entry, first.run_id) == ('[{"id":"x"}]', None, "r1")
    assert second.wire is None
    assert second.entry is not None
    first, _ = (await store.messages(NS, "t", renderer=3)).rows
    assert (first.wire, first.entry) == (None, entry)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 200])
async def test_walking_all_pages_gives_every_message_once(store: SqlStore, limit: int):
    expected: list[str] = []
    for n in range(6):
        if n % 3 == 2:
            await store.save(save_of(f"silent{n}", user_message("aside", injected=Injected.META)))
        await turn(store, f"r{n}")
        expected += [f"r{n}-q", f"r{n}-a"]
    assert await walked(store, limit) == expected
    assert names(await store.messages(NS, "t", renderer=1)) == expected


async def test_words_added_to_an_earlier_run_stand_where_that_run_stands(store: SqlStore):
    for run_id in ("r1", "r2"):
        await turn(store, run_id)
    await store.save(save_of("r1", user_message("added", id="added")))
    expected = ["r1-q", "r1-a", "added", "r2-q", "r2-a"]
    assert names(await store.messages(NS, "t", renderer=1)) == expected
    assert await walked(store, 2) == expected


async def test_a_cursor_stays_on_its_own_branch(store: SqlStore):
    for run_id in ("r1", "r2", "r3"):
        await turn(store, run_id)
    page = await store.messages(NS, "t", renderer=1, limit=2)
    await store.save(save_of("b1", asked("b1"), previous_run_id="r1"))
    older = await store.messages(NS, "t", renderer=1, limit=2, before=page.next_before)
    assert names(older) == ["r2-q", "r2-a"]
    assert names(await store.messages(NS, "t", renderer=1)) == ["r1-q", "r1-a", "b1-q"]
    assert names(await store.messages(NS, "t", renderer=1, run_id="r2")) == ["r1-q", "r1-a", "r2-q", "r2-a"]


async def test_a_cursor_of_another_thread_or_of_nobody_is_refused(store: SqlStore):
    await turn(store, "r1")
    await turn(store, "r2", thread_id="other")
    foreign = (await store.messages(NS, "other", renderer=1, limit=1)).next_before
    for before in (foreign, "0", "-1", "1e3", "", "९", "9" * 18, "9" * 40, "x"):
        with pytest.raises(InvalidInput) as refused:
            await store.messages(NS, "t", renderer=1, before=before)
        assert refused.value.field == "before"
    with pytest.raises(NotFound):
        await store.messages(NS, "t", renderer=1, run_id="r2")
    assert (await store.messages(NS, "unknown", renderer=1)).rows == []


async def test_the_head_places_the_asked_entries_on_its_branch_or_else_in_the_newest_run(store: SqlStore):
    for run_id in ("r1", "r2"):
        await turn(store, run_id)
    await store.save(save_of("b1", asked("b1"), asked("r2"), previous_run_id="r1"))
    await turn(store, "elsewhere", thread_id="other")
    asked_for = ["r1-q", "r2-q", "r2-a", "b1-q", "elsewhere-q", "unknown"]
    head = await store.head(NS, "t", asked_for)
    assert head.head == await store.get_run(NS, "t", "b1")
    assert head.known == {"r1-q": "r1", "r2-q": "b1", "b1-q": "b1", "r2-a": "r2"}
    other = await store.head(NS, "t", asked_for, run_id="r2")
    assert other.head == await store.get_run(NS, "t", "r2")
    assert other.known == {"r1-q": "r1", "r2-q": "r2", "r2-a": "r2", "b1-q": "b1"}
    for run_id in ("unknown", "elsewhere"):
        with pytest.raises(NotFound):
            await store.head(NS, "t", [], run_id=run_id)
    nothing = await store.head(NS, "unknown", asked_for)
    assert (nothing.thread, nothing.head, nothing.known) == (None, None, {})


async def test_the_head_places_more_entries_than_a_statement_can_name(store: SqlStore):
    await turn(store, "r1")
    head = await store.head(NS, "t", [f"m{n}" for n in range(40_000)] + ["r1-a"])
    assert head.known == {"r1-a": "r1"}
