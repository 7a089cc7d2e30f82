"""The promises of the store, kept over somebody's own storage with whatever it can do."""

import asyncio
from collections import Counter

import pytest

from app.agui.hydrate import WireRenderer
from app.clock import SystemClock
from app.conversation.entries import MessageEntry
from app.conversation.messages import Injected, Usage, user_message
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from app.errors import (
    AlreadyResumed,
    Conflict,
    HeadMoved,
    InvalidInput,
    NotFound,
    NotSupported,
    RunExists,
    StorageFailed,
    ThreadBusy,
)
from app.runs.recovery import settle_cut
from app.store.adapter import NewEntry, RunRecord, RunSave, Store, ThreadQuery
from app.store.foreign import ForeignStore
from app.store.opening import open_store
from tests.contracts.branches import ASKING, QUESTION, branch, run
from tests.contracts.somebodys_store import VARIANTS, Listing, Paging, Reading, SomebodysStore
from tests.contracts.turns import (
    DONE,
    NOON,
    NS,
    SECOND,
    answered,
    asked,
    claim_of,
    new,
    said,
    save_of,
    turn,
    whole,
)


def over(adapter: SomebodysStore) -> ForeignStore:
    """A store as a server that starts has it."""

    async def settle(store: Store, namespace: str, run: RunRecord) -> None:
        await settle_cut(store, WireRenderer(), SystemClock(), namespace, run)

    return ForeignStore(adapter, settle)


@pytest.fixture(params=VARIANTS)
def adapter(request: pytest.FixtureRequest) -> SomebodysStore:
    return request.param()


@pytest.fixture
def store(adapter: SomebodysStore) -> ForeignStore:
    return over(adapter)


@pytest.mark.requirement("HIS-14")
async def test_a_turn_is_told_back_with_its_end_by_a_storage_that_knows_no_ends(
    store: ForeignStore, adapter: SomebodysStore
):
    started = await store.claim(claim_of("r1", asked("r1"), state={"a": 1}, meta={"m": 1}, digest="d"))
    assert (started.status, started.previous_run_id) == (RunStatus.RUNNING, None)
    assert await store.get_run(NS, "t", "r1") == started
    used = (("openai", "gpt", Usage(input_tokens=3)),)
    end = RunEnd(EndReason.MODEL_ERROR, usage=used)
    assert await store.finish(NS, "r1", end, NOON + SECOND, entries=new(answered("r1")), state=[1])
    assert not await store.finish(NS, "r1", DONE, NOON)
    for reader in (store, over(adapter)):
        run = await reader.get_run(NS, "t", "r1")
        assert run is not None
        assert (run.seq, run.status, run.end_reason) == (started.seq, RunStatus.FAILED, "model_error")
        assert (run.state, run.meta, run.digest, run.ended_at) == ([1], {"m": 1}, "d", NOON + SECOND)
        assert run.error is not None
        assert run.error["code"] == "MODEL_ERROR"
        assert run.usage == [{"provider": "openai", "model": "gpt", "inputTokens": 3}]
        (row,) = await reader.transcript(NS, "t")
        assert (row.status, row.meta) == (RunStatus.FAILED, {"m": 1})
        assert said([row]) == whole("r1") == said(await reader.load(NS, "t"))


async def test_a_new_run_follows_the_head_and_keeps_its_state_and_meta(store: ForeignStore):
    first = await turn(store, "r1", state={"a": 1}, meta={"m": None})
    second = await store.claim(claim_of("r2"))
    assert (second.previous_run_id, second.state, second.meta) == ("r1", {"a": 1}, {"m": None})
    assert second.seq > first.seq
    await store.finish(NS, "r2", RunEnd(EndReason.STOP_REQUESTED), NOON)
    await store.save(save_of("r3", asked("r3")))
    await store.save(save_of("r2", meta={"replaced": True}))
    runs = await store.runs(NS, "t")
    assert [(run.id, run.status.value, run.state) for run in runs] == [
        ("r1", "completed", {"a": 1}),
        ("r2", "stopped", {"a": 1}),
        ("r3", "completed", {"a": 1}),
    ]
    assert runs[1].meta == {"replaced": True}


async def test_claims_are_refused_by_name_and_nothing_is_stored(store: ForeignStore):
    await turn(store, "r1")
    for thread_id in ("t", "another"):
        with pytest.raises(RunExists):
            await store.claim(claim_of("r1", thread_id=thread_id))
    with pytest.raises(HeadMoved):
        await store.claim(claim_of("r2", asked("r2"), expected_head=None))
    with pytest.raises(Conflict):
        await store.claim(claim_of("r2", asked("r2"), asked("r2")))
    await store.claim(claim_of("live", expected_head="r1"))
    with pytest.raises(ThreadBusy) as refused:
        await store.claim(claim_of("r2", asked("r2")))
    assert refused.value.run_id == "live"
    assert await store.get_thread(NS, "another") is None
    assert await store.get_run(NS, "t", "r2") is None


@pytest.mark.requirement("HIS-14")
async def test_of_many_claims_of_one_thread_or_one_run_id_one_wins(store: ForeignStore):
    async def one(run_id: str, thread_id: str) -> str:
        try:
            return type(await store.claim(claim_of(run_id, thread_id=thread_id))).__name__
        except Conflict as refused:
            return type(refused).__name__

    threads = await asyncio.gather(*(one(f"r{n}", "t") for n in range(20)))
    assert Counter(threads) == Counter({"RunRecord": 1, "ThreadBusy": 19})
    ids = await asyncio.gather(*(one("same", f"t{n}") for n in range(20)))
    assert Counter(ids) == Counter({"RunRecord": 1, "RunExists": 19})
    assert len(await store.live_runs()) == 2


async def test_nothing_is_added_to_a_run_that_has_ended_or_never_was(store: ForeignStore):
    await turn(store, "r1")
    with pytest.raises(Conflict):
        await store.append(NS, "r1", new(user_message("late")))
    with pytest.raises(NotFound):
        await store.append(NS, "r2", new(user_message("nowhere")))
    assert [row.entry.id for row in await store.run_entries(NS, "r1")] == ["r1-q", "r1-a"]


@pytest.mark.requirement("HIS-14", "MSG-06")
async def test_meta_messages_are_stored_and_ephemeral_ones_are_not(store: ForeignStore):
    kept = user_message("kept", injected=Injected.META)
    gone = user_message("gone", injected=Injected.EPHEMERAL)
    question = asked("r1")
    await store.claim(claim_of("r1", gone, kept, question))
    rows = await store.run_entries(NS, "r1")
    assert [row.entry for row in rows] == [MessageEntry(kept), MessageEntry(question)]
    page = await store.messages(NS, "t", renderer=1)
    assert [row.entry.id for row in page.rows if row.entry] == ["r1-q"]


@pytest.mark.requirement("HIS-14")
async def test_a_run_that_a_restart_cut_is_ended_when_its_thread_is_read(adapter: SomebodysStore):
    before = over(adapter)
    await before.claim(claim_of("r1", asked("r1")))
    after = over(adapter)
    found = await asyncio.gather(*(after.get_thread(NS, "t") for _ in range(5)))
    assert {thread.last_run_status for thread in found if thread} == {RunStatus.FAILED}
    run = await after.get_run(NS, "t", "r1")
    assert run is not None
    assert (run.status, run.end_reason) == (RunStatus.FAILED, "server_restart")
    assert await after.live_runs() == []
    second = await after.claim(claim_of("r2"))
    assert second.previous_run_id == "r1"


@pytest.mark.requirement("HIS-14", "HIS-05", "HIS-06")
async def test_branches_and_answered_questions_are_there_after_a_restart(adapter: SomebodysStore):
    before = over(adapter)
    await run(before, "r1", "1-q", "1-a")
    await run(before, "r2", "2-q", "2-a", end=ASKING, previous_run_id="r1", branch_after_entry="1-q")
    await run(before, "r3", "3-a", resumes=True)
    after = over(adapter)
    assert await branch(after) == ["1-q", "2-q", "2-a", "3-a"]
    paused, cut = await after.get_run(NS, "t", "r2"), await before.get_run(NS, "t", "r2")
    assert paused == cut
    assert paused is not None
    assert (paused.branch_after_entry, paused.resumed_by) == ("1-q", "r3")
    assert paused.interrupts == [QUESTION.model_dump(mode="json", by_alias=True)]
    with pytest.raises(AlreadyResumed):
        await after.claim(claim_of("r4", previous_run_id="r2", resumes=True))
    await run(after, "b1", "b-q", previous_run_id=None)
    assert await branch(over(adapter)) == ["b-q"]


@pytest.mark.requirement("HIS-14")
@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_pages_are_those_of_the_database(
    store: ForeignStore, limit: int, tmp_path_factory: pytest.TempPathFactory
):
    database = await open_store("sqlite://", tmp_path_factory.mktemp("unused"))
    for each in (store, database):
        for name in ("z", "y", "x", "w", "v"):
            await turn(each, name)
    for run_id in (None, "x"):
        for before in (None, "v", "w", "x", "y", "z"):
            mine, theirs = [
                await each.transcript_page(NS, "t", limit=limit, before_run_id=before, run_id=run_id)
                for each in (store, database)
            ]
            assert said(mine.rows) == said(theirs.rows)
            assert [row.status for row in mine.rows] == [row.status for row in theirs.rows]
            assert mine.next_before_run_id == theirs.next_before_run_id
            assert mine.latest is not None
            assert theirs.latest is not None
            assert (mine.latest.id, mine.latest.status) == (theirs.latest.id, theirs.latest.status)
    await database.close()


async def test_places_of_another_thread_are_refused(store: ForeignStore):
    await turn(store, "r1")
    await turn(store, "elsewhere", thread_id="other")
    for before in ("unknown", "elsewhere"):
        with pytest.raises(InvalidInput) as refused:
            await store.transcript_page(NS, "t", before_run_id=before)
        assert refused.value.field == "before_run_id"
    foreign = (await store.messages(NS, "other", renderer=1, limit=1)).next_before
    assert foreign is not None
    for place in (foreign, "", "x", "é", "1"):
        with pytest.raises(InvalidInput) as refused:
            await store.messages(NS, "t", renderer=1, before=place)
        assert refused.value.field == "before"
    with pytest.raises(NotFound):
        await store.transcript_page(NS, "t", run_id="elsewhere")
    assert await store.get_run(NS, "t", "elsewhere") is None


@pytest.mark.parametrize("limit", [1, 3, 200])
async def test_walking_all_pages_of_messages_gives_every_one_once(store: ForeignStore, limit: int):
    for n in range(4):
        await turn(store, f"r{n}")
    found: list[str] = []
    before: str | None = None
    while True:
        page = await store.messages(NS, "t", renderer=1, limit=limit, before=before)
        found = [row.entry.id for row in page.rows if row.entry] + found
        before = page.next_before
        if before is None:
            break
    assert found == [f"r{n}-{part}" for n in range(4) for part in "qa"]


async def test_the_head_places_the_asked_entries(store: ForeignStore):
    await turn(store, "r1")
    await turn(store, "r2")
    head = await store.head(NS, "t", ["r1-q", "r2-a", "unknown"])
    assert head.known == {"r1-q": "r1", "r2-a": "r2"}
    assert head.head == await store.get_run(NS, "t", "r2")
    assert (await store.head(NS, "unknown", ["r1-q"])).head is None


@pytest.mark.requirement("HIS-14")
async def test_what_a_storage_can_do_itself_is_left_to_it():
    reading, paging, listing = Reading(), Paging(), Listing()
    for adapter in (reading, paging, listing):
        await turn(over(adapter), "r1")
    assert reading.loads == 0
    await over(paging).transcript_page(NS, "t")
    assert paging.pages == 1
    page = await over(listing).list_threads(NS, ThreadQuery())
    assert [(thread.id, thread.run_count) for thread in page.threads] == [("t", 1)]
    live = over(listing)
    await live.claim(claim_of("r2"))
    (thread,) = (await live.list_threads(NS, ThreadQuery())).threads
    assert thread.last_run_status is RunStatus.RUNNING
    with pytest.raises(NotSupported):
        await over(SomebodysStore()).list_threads(NS, ThreadQuery())


class Shaky(SomebodysStore):
    """Stores, and then says that it did not; or refuses."""

    shaken = False
    refusing = False

    async def save(self, save: RunSave) -> None:
        if self.refusing:
            raise OSError("full")
        await super().save(save)
        if self.shaken:
            self.shaken = False
            raise OSError("gone")


async def test_a_save_that_broke_off_is_made_good_by_trying_again():
    adapter = Shaky()
    store = over(adapter)
    await store.claim(claim_of("r1", asked("r1")))
    for attempt in (
        lambda: store.append(NS, "r1", new(answered("r1"))),
        lambda: store.finish(NS, "r1", DONE, NOON),
    ):
        adapter.shaken = True
        with pytest.raises(StorageFailed):
            await attempt()
        await attempt()
    assert said(await store.transcript(NS, "t")) == whole("r1")
    adapter.shaken = True
    with pytest.raises(StorageFailed):
        await store.claim(claim_of("r2"))
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert thread.last_run_status is RunStatus.FAILED
    await store.claim(claim_of("r3"))
    await store.append(NS, "r3", [NewEntry(MessageEntry(asked("r3")))])


async def test_a_cut_run_that_cannot_be_ended_yet_is_ended_by_the_next_reader():
    adapter = Shaky()
    await over(adapter).claim(claim_of("r1", asked("r1")))
    store = over(adapter)
    adapter.refusing = True
    with pytest.raises(StorageFailed):
        await store.get_thread(NS, "t")
    assert await store.live_runs() == []
    adapter.refusing = False
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert thread.last_run_status is RunStatus.FAILED
