"""Threads as a picker shows them, and what becomes of them."""

import base64
import json

import pytest

from app.conversation.messages import Injected, Message, user_message
from app.conversation.outcomes import RunStatus
from app.errors import Conflict, InvalidInput, ThreadBusy
from app.store.adapter import ThreadPatch, ThreadQuery, ThreadRecord
from app.store.sql import SqlStore
from tests.contracts.turns import (
    DONE,
    NOON,
    NS,
    SECOND,
    answered,
    asked,
    attributes,
    claim_of,
    instant,
    new,
    said,
    save_of,
    turn,
    whole,
)


async def get(store: SqlStore, thread_id: str = "t") -> ThreadRecord:
    """A thread that must be there."""
    thread = await store.get_thread(NS, thread_id)
    assert thread is not None
    return thread


async def listed(store: SqlStore, **query: object) -> list[str]:
    """The ids of all threads of a listing, over all its pages."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.list_threads(NS, ThreadQuery(**{"limit": 2, "cursor": cursor, **query}))  # pyright: ignore[reportArgumentType]
        found += [thread.id for thread in page.threads]
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.requirement("HIS-17")
async def test_a_thread_tells_what_it_was_made_with(store: SqlStore):
    made = attributes(agent="a", group_id="g", parent_thread_id="p", hidden=True)
    created = await store.create_thread(NS, "t", made, "A title")
    assert created == ThreadRecord(
        id="t",
        agent="a",
        conversation_id="c1",
        group_id="g",
        parent_thread_id="p",
        hidden=True,
        title="A title",
        archived_at=None,
        head_run_id=None,
        run_count=0,
        message_count=0,
        last_run_status=None,
        created_at=NOON,
        updated_at=NOON,
    )
    assert await get(store) == created
    with pytest.raises(Conflict):
        await store.create_thread(NS, "t", attributes())


@pytest.mark.requirement("HIS-08")
async def test_an_empty_group_is_the_default_one(store: SqlStore):
    await store.create_thread(NS, "t", attributes(group_id=""))
    assert (await get(store)).group_id == "default"


@pytest.mark.requirement("HIS-08")
async def test_later_runs_leave_group_parent_and_hidden_alone(store: SqlStore):
    await turn(store, "r1", thread=attributes(group_id="g", parent_thread_id="p", hidden=True))
    await turn(store, "r2", thread=attributes(group_id="other", agent="other"))
    thread = await get(store)
    assert (thread.group_id, thread.parent_thread_id, thread.hidden) == ("g", "p", True)
    assert thread.agent == "assistant"


@pytest.mark.requirement("HIS-17")
async def test_counts_are_of_what_a_reader_sees_on_the_heads_branch(store: SqlStore):
    await turn(store, "r1")
    await store.claim(claim_of("r2", asked("r2"), user_message("aside", injected=Injected.META)))
    await store.append(NS, "r2", new(answered("r2")))
    await store.finish(NS, "r2", DONE, NOON, entries=new(user_message("last")))
    thread = await get(store)
    assert (thread.run_count, thread.message_count) == (2, 5)
    await store.save(save_of("r3", asked("r3"), previous_run_id="r1"))
    thread = await get(store)
    assert (thread.head_run_id, thread.run_count, thread.message_count) == ("r3", 2, 3)
    await store.save(save_of("r2", user_message("off the branch")))
    await store.save(save_of("r1", user_message("on the branch")))
    assert (await get(store)).message_count == 4


@pytest.mark.requirement("HIS-17", "MSG-13")
async def test_newest_activity_is_listed_first(store: SqlStore):
    for at, thread_id in enumerate("abc"):
        await turn(store, thread_id, NOON + at * 1_000_000, thread_id=thread_id)
    await turn(store, "again", NOON + SECOND, thread_id="a")
    assert await listed(store) == ["a", "c", "b"]


async def test_patches_are_no_activity(store: SqlStore):
    await turn(store, "r1", thread_id="a")
    await turn(store, "r2", NOON + SECOND, thread_id="b")
    await store.patch_thread(NS, "a", ThreadPatch(title="Renamed"), NOON + 9 * SECOND)
    assert await listed(store) == ["b", "a"]


@pytest.mark.requirement("HIS-17")
async def test_equal_times_are_listed_by_id_and_no_thread_twice(store: SqlStore):
    names = [f"{letter}{n}" for letter in "aZ_é" for n in range(3)]
    for name in names:
        await store.create_thread(NS, name, attributes())
    assert await listed(store) == sorted(names, reverse=True)


@pytest.mark.requirement("HIS-17", "AGUI-14")
async def test_listings_filter(store: SqlStore):
    await store.create_thread(NS, "plain", attributes())
    await store.create_thread(NS, "grouped", attributes(group_id="g"))
    await store.create_thread(NS, "hidden", attributes(hidden=True, parent_thread_id="plain"))
    await store.create_thread(NS, "other", attributes(agent="other"))
    await store.patch_thread(NS, "other", ThreadPatch(archived_at=NOON), NOON)
    assert await listed(store) == ["plain", "other", "grouped"]
    assert await listed(store, include_hidden=True) == ["plain", "other", "hidden", "grouped"]
    assert await listed(store, group_id="g") == ["grouped"]
    assert await listed(store, parent_thread_id="plain") == []
    assert await listed(store, parent_thread_id="plain", include_hidden=True) == ["hidden"]
    assert await listed(store, agent="other") == ["other"]
    assert await listed(store, archived=False) == ["plain", "grouped"]
    assert await listed(store, archived=True) == ["other"]


@pytest.mark.requirement("HIS-17")
async def test_a_cursor_is_taken_back_by_its_own_listing_only(store: SqlStore):
    for name in "abc":
        await store.create_thread(NS, name, attributes())
    cursor = (await store.list_threads(NS, ThreadQuery(limit=1))).next_cursor
    assert cursor is not None
    forged = base64.urlsafe_b64encode(json.dumps([1, 2, 3]).encode()).decode()
    for query in (
        ThreadQuery(cursor="no cursor"),
        ThreadQuery(cursor=""),
        ThreadQuery(cursor="é"),
        ThreadQuery(cursor=forged),
        ThreadQuery(cursor=cursor[:-4]),
        ThreadQuery(cursor=cursor, agent="other"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await store.list_threads(NS, query)
        assert refused.value.field == "cursor"
    with pytest.raises(InvalidInput):
        await store.list_threads("another namespace", ThreadQuery(cursor=cursor))
    for limit in (0, 201):
        with pytest.raises(InvalidInput):
            await store.list_threads(NS, ThreadQuery(limit=limit))


@pytest.mark.requirement("HIS-17")
async def test_the_first_title_stays_until_it_is_changed(store: SqlStore):
    await turn(store, "r1", title="First words")
    await turn(store, "r2", title="Second words")
    assert (await get(store)).title == "First words"
    patched = await store.patch_thread(NS, "t", ThreadPatch(title="Chosen"), NOON)
    assert patched == await get(store)
    await turn(store, "r3", title="Third words")
    assert (await get(store)).title == "Chosen"


@pytest.mark.requirement("HIS-17")
async def test_a_saved_thread_is_named_by_the_first_text_a_person_wrote(store: SqlStore):
    aside: Message = user_message("not this", injected=Injected.META)
    await store.save(save_of("r1", aside))
    assert (await get(store)).title is None
    await store.save(save_of("r1", user_message("This one\nand more")))
    assert (await get(store)).title == "This one"


async def test_an_archived_thread_comes_back_by_patch_or_by_a_run(store: SqlStore):
    await turn(store, "r1")
    for back in ("patch", "run"):
        await store.patch_thread(NS, "t", ThreadPatch(archived_at=NOON + SECOND), NOON)
        assert (await get(store)).archived_at == NOON + SECOND
        if back == "patch":
            await store.patch_thread(NS, "t", ThreadPatch(archived_at=None), NOON)
        else:
            await store.claim(claim_of("r2"))
        assert (await get(store)).archived_at is None
    assert await store.patch_thread(NS, "unknown", ThreadPatch(title="x"), NOON) is None


@pytest.mark.requirement("HIS-21")
async def test_a_clock_that_was_set_back_makes_no_thread_older(store: SqlStore):
    await turn(store, "r1", NOON)
    await turn(store, "r2", instant("2001-01-01T00:00:00Z"))
    thread = await get(store)
    assert (thread.updated_at, thread.head_run_id) == (NOON, "r2")


async def test_times_keep_their_milliseconds(store: SqlStore):
    run = await store.claim(claim_of("r1", created_at=NOON + 123_456_789))
    assert run.created_at == NOON + 123_000_000
    assert await store.get_run(NS, "t", "r1") == run


async def test_activity_is_a_claim_and_an_end(store: SqlStore):
    await store.claim(claim_of("r1", created_at=NOON + SECOND))
    assert (await get(store)).updated_at == NOON + SECOND
    await store.append(NS, "r1", new(answered("r1")))
    assert (await get(store)).updated_at == NOON + SECOND
    await store.finish(NS, "r1", DONE, NOON + 2 * SECOND)
    thread = await get(store)
    assert (thread.updated_at, thread.last_run_status) == (NOON + 2 * SECOND, RunStatus.COMPLETED)


async def test_deletion_takes_runs_entries_and_hidden_children_along(store: SqlStore):
    await turn(store, "r1", thread_id="t")
    await turn(store, "r2", thread_id="child", thread=attributes(hidden=True, parent_thread_id="t"))
    await turn(store, "r3", thread_id="below", thread=attributes(hidden=True, parent_thread_id="child"))
    await turn(store, "r4", thread_id="shown", thread=attributes(parent_thread_id="t"))
    assert await store.delete_thread(NS, "t", NOON)
    assert await listed(store, include_hidden=True) == ["shown"]
    assert await store.run_entries(NS, "r1") == []
    assert await store.get_run(NS, "below", "r3") is None
    assert not await store.delete_thread(NS, "t", NOON)


async def test_the_run_ids_of_a_deleted_thread_can_be_used_again(store: SqlStore):
    hidden = attributes(hidden=True, parent_thread_id="t")
    await turn(store, "r1", thread_id="t", title="First")
    await turn(store, "r2", thread_id="child", thread=hidden)
    assert await store.delete_thread(NS, "t", NOON)
    await turn(store, "r1", thread_id="another")
    again = await turn(store, "r2", thread_id="t")
    assert again.previous_run_id is None
    assert said(await store.transcript(NS, "t")) == whole("r2")
    assert said(await store.transcript(NS, "another")) == whole("r1")
    assert (await get(store)).title is None


async def test_a_thread_with_a_live_run_below_it_is_not_deleted(store: SqlStore):
    await turn(store, "r1")
    await store.claim(claim_of("r2", thread_id="child", thread=attributes(hidden=True, parent_thread_id="t")))
    with pytest.raises(ThreadBusy) as refused:
        await store.delete_thread(NS, "t", NOON)
    assert (refused.value.thread_id, refused.value.run_id) == ("child", "r2")
    assert await store.get_thread(NS, "t") is not None
    await store.finish(NS, "r2", DONE, NOON)
    assert await store.delete_thread(NS, "t", NOON)


@pytest.mark.requirement("HIS-13")
async def test_the_same_ids_in_two_namespaces_never_meet(store: SqlStore):
    await store.claim(claim_of("r1", asked("r1"), namespace="one", title="One"))
    await store.claim(claim_of("r1", asked("r1"), namespace="two", title="Two"))
    one, two = await store.get_thread("one", "t"), await store.get_thread("two", "t")
    assert one is not None
    assert two is not None
    assert (one.title, two.title) == ("One", "Two")
    await store.finish("one", "r1", DONE, NOON)
    assert [ns for ns, _ in await store.live_runs()] == ["two"]
    assert await store.delete_thread("one", "t", NOON)
    assert await store.get_thread("two", "t") == two
    assert (await store.list_threads("one", ThreadQuery())).threads == []
    assert (await store.messages("one", "t", renderer=1)).rows == []
    assert (await store.head("one", "t", ["r1-q"])).known == {}
