"""What was said, turn by turn, whole and in pages."""

import pytest
from pydantic import JsonValue

from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.messages import Injected, Message, user_message
from app.errors import InvalidInput, NotFound
from app.store.adapter import NewEntry
from app.store.sql import SqlStore
from tests.contracts.turns import DONE, NOON, NS, SECOND, asked, claim_of, said, save_of, turn, whole


@pytest.mark.requirement("HIS-10", "HIS-01")
async def test_a_transcript_is_every_turn_of_the_branch_in_order(store: SqlStore):
    for run_id in ("r1", "r2", "r3"):
        await turn(store, run_id)
    assert said(await store.transcript(NS, "t")) == whole("r1", "r2", "r3")
    assert said(await store.transcript(NS, "t", "r2")) == whole("r1", "r2")
    assert said(await store.load(NS, "t")) == whole("r1", "r2", "r3")
    assert await store.load(NS, "unknown") == []


@pytest.mark.requirement("HIS-10")
async def test_a_transcript_holds_meta_messages_and_custom_entries(store: SqlStore):
    meta = user_message("aside", injected=Injected.META)
    record = CustomEntry(name="n", value=None)
    await store.claim(claim_of("r1", asked("r1"), meta, meta={"k": 1}))
    await store.append(NS, "r1", [NewEntry(record)])
    (row,) = await store.transcript(NS, "t")
    assert list(row.entries)[1:] == [MessageEntry(meta), record]
    assert (row.meta, row.previous_run_id, row.created_at) == ({"k": 1}, None, NOON)


@pytest.mark.requirement("HIS-05", "HIS-10")
async def test_a_branch_leaves_the_other_stored_and_reachable(store: SqlStore):
    for run_id in ("r1", "r2", "r3"):
        await turn(store, run_id)
    await store.save(save_of("b1", asked("b1"), previous_run_id="r1"))
    await turn(store, "b2")
    assert [run for run, _ in said(await store.transcript(NS, "t"))] == ["r1", "b1", "b2"]
    assert said(await store.load(NS, "t", "r3")) == whole("r1", "r2", "r3")
    assert [run.id for run in await store.runs(NS, "t")] == ["r1", "r2", "r3", "b1", "b2"]


@pytest.mark.requirement("HIS-05")
async def test_an_unknown_run_is_an_error_and_never_the_whole_thread(store: SqlStore):
    await turn(store, "r1")
    await turn(store, "elsewhere", thread_id="other")
    for run_id in ("unknown", "elsewhere"):
        for reading in (store.load, store.transcript):
            with pytest.raises(NotFound):
                await reading(NS, "t", run_id)
        with pytest.raises(NotFound):
            await store.transcript_page(NS, "t", run_id=run_id)


@pytest.mark.requirement("HIS-11", "HIS-12")
async def test_pages_hold_complete_turns_and_go_back_to_the_start(store: SqlStore):
    names = ["z", "y", "x", "w", "v"]  # order is that of insertion, not of ids
    for name in names:
        await turn(store, name)
    page = await store.transcript_page(NS, "t", limit=2)
    assert (said(page.rows), page.next_before_run_id) == (whole("w", "v"), "w")
    page = await store.transcript_page(NS, "t", limit=2, before_run_id="w")
    assert (said(page.rows), page.next_before_run_id) == (whole("y", "x"), "y")
    assert page.latest is not None
    assert page.latest.id == "v"
    page = await store.transcript_page(NS, "t", limit=2, before_run_id="y")
    assert (said(page.rows), page.next_before_run_id) == (whole("z"), None)
    page = await store.transcript_page(NS, "t", limit=2, before_run_id="z")
    assert (page.rows, page.next_before_run_id) == ([], None)


@pytest.mark.requirement("HIS-11")
async def test_walking_all_pages_equals_the_transcript_while_new_runs_arrive(store: SqlStore):
    names = [f"r{n}" for n in range(7)]
    for name in names:
        await turn(store, name)
    before = await store.transcript(NS, "t")
    walked: list[tuple[str, list[str]]] = []
    cursor: str | None = None
    for n in range(100):
        page = await store.transcript_page(NS, "t", limit=2, before_run_id=cursor)
        walked = said(page.rows) + walked
        assert page.latest is not None
        assert page.latest.id == (f"new{n - 1}" if n else "r6")
        await turn(store, f"new{n}")
        cursor = page.next_before_run_id
        if cursor is None:
            break
    assert walked == said(before)


@pytest.mark.requirement("HIS-11")
async def test_latest_is_the_head_while_an_older_branch_is_read(store: SqlStore):
    for run_id in ("r1", "r2"):
        await turn(store, run_id)
    page = await store.transcript_page(NS, "t", run_id="r1")
    assert said(page.rows) == whole("r1")
    assert page.latest == await store.get_run(NS, "t", "r2")
    empty = await store.transcript_page(NS, "unknown")
    assert (empty.rows, empty.next_before_run_id, empty.latest) == ([], None, None)


@pytest.mark.requirement("HIS-11")
async def test_a_place_in_another_thread_is_no_place_in_this(store: SqlStore):
    await turn(store, "r1")
    await turn(store, "elsewhere", thread_id="other")
    for before in ("unknown", "elsewhere"):
        with pytest.raises(InvalidInput) as refused:
            await store.transcript_page(NS, "t", before_run_id=before)
        assert refused.value.field == "before_run_id"
    for limit in (0, 201):
        with pytest.raises(InvalidInput):
            await store.transcript_page(NS, "t", limit=limit)


@pytest.mark.requirement("HIS-21", "HIS-12")
async def test_order_is_that_of_insertion_whatever_the_clock_says(store: SqlStore):
    for run_id, at in (("r1", NOON), ("r2", NOON - 9 * SECOND), ("r3", NOON - 9 * SECOND), ("r4", 0)):
        message = user_message(run_id, id=run_id).model_copy(update={"created_at": at or None})
        untimed = user_message("later", id=f"{run_id}-later").model_copy(update={"created_at": None})
        await store.claim(claim_of(run_id, message, untimed, created_at=at))
        await store.finish(NS, run_id, DONE, at)
    expected = [(f"r{n}", [f"r{n}", f"r{n}-later"]) for n in (1, 2, 3, 4)]
    assert said(await store.transcript(NS, "t")) == expected
    assert [run.id for run in await store.runs(NS, "t")] == ["r1", "r2", "r3", "r4"]
    page = await store.messages(NS, "t", renderer=1)
    assert [row.entry.id for row in page.rows if row.entry] == [name for _, both in expected for name in both]


@pytest.mark.requirement("HIS-16")
async def test_entries_without_a_time_or_with_the_zero_one_load_as_untimed(store: SqlStore):
    old: dict[str, JsonValue] = {
        "id": "a",
        "role": "user",
        "content": [],
        "createdAt": "0001-01-01T00:00:00Z",
    }
    zero = Message.model_validate(old)
    none = user_message("b").model_copy(update={"created_at": None})
    await store.save(save_of("r1", zero, none))
    rows = await store.run_entries(NS, "r1")
    times = [row.entry.message.created_at for row in rows if isinstance(row.entry, MessageEntry)]
    assert times == [None, None]
