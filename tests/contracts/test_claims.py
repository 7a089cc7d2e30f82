"""Who gets a run, what is stored with it, and how it ends."""

import asyncio
from collections import Counter

import pytest
from pydantic import JsonValue

from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.messages import Injected, Usage, user_message
from app.conversation.outcomes import EndReason, RunEnd, RunError, RunStatus
from app.errors import Conflict, InvalidInput, NotFound, RunExists, ThreadBusy
from app.store.adapter import Claim, NewEntry
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
    ids,
    new,
    turn,
)


@pytest.mark.requirement("HIS-01", "HIS-09")
async def test_a_claim_stores_the_run_and_its_opening_turn_at_once(store: SqlStore):
    run = await store.claim(
        claim_of("r1", asked("r1"), input={"tools": []}, digest="d", state={"step": 1}, owner="me")
    )
    assert (run.status, run.epoch, run.previous_run_id, run.created_at) == (RunStatus.RUNNING, 1, None, NOON)
    assert await store.get_run(NS, "t", "r1") == run
    assert ids([row.entry for row in await store.run_entries(NS, "r1")]) == ["r1-q"]
    head = await store.head(NS, "t", [])
    assert head.head == run
    assert head.thread is not None
    assert head.thread.last_run_status is RunStatus.RUNNING


@pytest.mark.requirement("HIS-04")
async def test_a_new_run_follows_the_head_and_keeps_its_state_and_meta(store: SqlStore):
    await store.claim(claim_of("r1", state={"a": [1]}, meta={"m": None}))
    await store.finish(NS, "r1", DONE, NOON, state={"a": [1, 2]})
    second = await store.claim(claim_of("r2"))
    assert (second.previous_run_id, second.state, second.meta) == ("r1", {"a": [1, 2]}, {"m": None})
    await store.finish(NS, "r2", DONE, NOON)
    third = await store.claim(claim_of("r3", state=None, meta={}))
    assert (third.previous_run_id, third.state, third.meta) == ("r2", None, {})
    assert await store.get_run(NS, "t", "r3") == third


async def test_a_busy_thread_is_refused_by_name_and_nothing_is_stored(store: SqlStore):
    await store.claim(claim_of("r1", asked("r1")))
    with pytest.raises(ThreadBusy) as refused:
        await store.claim(claim_of("r2", asked("r2")))
    assert refused.value.run_id == "r1"
    assert await store.get_run(NS, "t", "r2") is None
    assert await store.run_entries(NS, "r2") == []


async def test_a_used_run_id_is_refused_even_on_another_thread(store: SqlStore):
    await turn(store, "r1")
    for thread_id in ("t", "another"):
        with pytest.raises(RunExists):
            await store.claim(claim_of("r1", thread_id=thread_id))
    assert await store.get_thread(NS, "another") is None


@pytest.mark.requirement("HIS-13")
async def test_of_fifty_claims_of_one_run_id_one_wins(store: SqlStore):
    claims = [claim_of("r1", asked("r1"), thread_id=f"t{n % 5}") for n in range(50)]
    assert await _race(store, claims) == Counter({"RunRecord": 1, "RunExists": 49})
    assert len(await store.live_runs()) == 1


@pytest.mark.requirement("HIS-13")
async def test_of_fifty_claims_of_one_thread_one_wins(store: SqlStore):
    claims = [claim_of(f"r{n}", asked(f"r{n}")) for n in range(50)]
    assert await _race(store, claims) == Counter({"RunRecord": 1, "ThreadBusy": 49})
    assert len(await store.runs(NS, "t")) == 1


@pytest.mark.requirement("HIS-13")
async def test_fifty_claims_of_fifty_threads_all_win(store: SqlStore):
    claims = [claim_of(f"r{n}", asked(f"r{n}"), thread_id=f"t{n}") for n in range(50)]
    assert await _race(store, claims) == Counter({"RunRecord": 50})
    assert len(await store.live_runs()) == 50


async def _race(store: SqlStore, claims: list[Claim]) -> Counter[str]:
    """Lets all claims go at the same moment, and counts what became of them."""
    barrier = asyncio.Barrier(len(claims))

    async def one(claim: Claim) -> str:
        await barrier.wait()
        try:
            return type(await store.claim(claim)).__name__
        except Conflict as refused:
            return type(refused).__name__

    return Counter(await asyncio.gather(*(one(claim) for claim in claims)))


async def test_two_opening_entries_of_one_id_are_refused_whole(store: SqlStore):
    with pytest.raises(Conflict):
        await store.claim(claim_of("r1", asked("r1"), asked("r1")))
    assert await store.get_thread(NS, "t") is None


@pytest.mark.requirement("HIS-09")
async def test_entries_are_appended_in_order_while_the_run_is_running(store: SqlStore):
    await store.claim(claim_of("r1", asked("r1")))
    record = CustomEntry(name="chart", value={"y": [1, 2.5]}, created_at=NOON + 1, sender_id="plotter")
    await store.append(NS, "r1", [NewEntry(record)])
    await store.append(NS, "r1", new(answered("r1")))
    rows = await store.run_entries(NS, "r1")
    assert [row.seq for row in rows] == sorted(row.seq for row in rows)
    assert ids([row.entry for row in rows]) == ["r1-q", record.id, "r1-a"]
    assert rows[1].entry == record


@pytest.mark.requirement("MSG-06", "MSG-07")
async def test_meta_messages_are_stored_and_ephemeral_ones_are_not(store: SqlStore):
    kept = user_message("kept", injected=Injected.META, origin="hook")
    gone = user_message("gone", injected=Injected.EPHEMERAL, origin="hook")
    await store.claim(claim_of("r1", gone, kept))
    await store.append(NS, "r1", new(gone))
    assert [row.entry for row in await store.run_entries(NS, "r1")] == [MessageEntry(kept)]


async def test_nothing_is_added_to_a_run_that_has_ended(store: SqlStore):
    await turn(store, "r1")
    with pytest.raises(Conflict):
        await store.append(NS, "r1", new(user_message("late")))
    with pytest.raises(NotFound):
        await store.append(NS, "r2", new(user_message("nowhere")))
    assert len(await store.run_entries(NS, "r1")) == 2


@pytest.mark.requirement("HIS-09")
async def test_the_end_is_stored_with_the_last_entries(store: SqlStore):
    await store.claim(claim_of("r1", asked("r1")))
    used = (("openai", "gpt", Usage(input_tokens=3, output_tokens=0)), (None, None, Usage()))
    end = RunEnd(EndReason.STOP_REQUESTED, usage=used)
    assert await store.finish(NS, "r1", end, NOON + SECOND, entries=new(answered("r1")), state=[1])
    run = await store.get_run(NS, "t", "r1")
    assert run is not None
    assert (run.status, run.end_reason, run.state) == (RunStatus.STOPPED, "stop_requested", [1])
    assert run.usage == [{"provider": "openai", "model": "gpt", "inputTokens": 3, "outputTokens": 0}, {}]
    assert (run.error, run.ended_at) == (None, NOON + SECOND)
    assert ids([row.entry for row in await store.run_entries(NS, "r1")]) == ["r1-q", "r1-a"]


async def test_a_run_ends_once(store: SqlStore):
    await turn(store, "r1")
    again = await store.finish(NS, "r1", RunEnd(EndReason.SHUTDOWN), NOON, entries=new(user_message("late")))
    assert not again
    run = await store.get_run(NS, "t", "r1")
    assert run is not None
    assert run.status is RunStatus.COMPLETED
    assert len(await store.run_entries(NS, "r1")) == 2


async def test_of_many_ends_of_one_run_one_counts(store: SqlStore):
    await store.claim(claim_of("r1"))
    ends = [
        store.finish(NS, "r1", DONE, NOON, entries=new(user_message("bye", id=f"e{n}"))) for n in range(20)
    ]
    assert sum(await asyncio.gather(*ends)) == 1
    assert len(await store.run_entries(NS, "r1")) == 1


async def test_a_failure_is_stored_with_its_code_and_public_words(store: SqlStore):
    await store.claim(claim_of("r1"))
    await store.finish(NS, "r1", RunEnd(EndReason.MODEL_TIMEOUT), NOON)
    await store.claim(claim_of("r2"))
    await store.finish(NS, "r2", RunEnd(EndReason.MODEL_ERROR, error=RunError("QUOTA", "No more.")), NOON)
    first, second = await store.runs(NS, "t")
    assert first.error is not None
    assert first.error["code"] == "MODEL_TIMEOUT"
    assert second.error == {"code": "QUOTA", "message": "No more."}


async def test_an_ended_run_frees_its_thread(store: SqlStore):
    await store.claim(claim_of("r1"))
    assert [(ns, run.id) for ns, run in await store.live_runs()] == [(NS, "r1")]
    await store.finish(NS, "r1", RunEnd(EndReason.SERVER_RESTART), NOON)
    assert await store.live_runs() == []
    await store.claim(claim_of("r2"))


async def test_an_append_that_meets_the_end_is_stored_whole_or_refused(store: SqlStore):
    await store.claim(claim_of("r1"))

    async def append(n: int) -> int:
        try:
            await store.append(NS, "r1", new(user_message("a", id=f"{n}a"), user_message("b", id=f"{n}b")))
        except Conflict:
            return 0
        return 2

    *stored, _ = await asyncio.gather(*(append(n) for n in range(10)), store.finish(NS, "r1", DONE, NOON))
    assert len(await store.run_entries(NS, "r1")) == sum(stored)
    thread = await store.get_thread(NS, "t")
    assert thread is not None
    assert thread.message_count == sum(stored)


@pytest.mark.requirement("HIS-15")
async def test_ids_and_times_come_from_the_caller(store: SqlStore):
    made = attributes(created_at=NOON - SECOND, conversation_id="conversation")
    await store.claim(claim_of("my run", asked("my run"), thread_id="my thread", thread=made))
    thread = await store.get_thread(NS, "my thread")
    assert thread is not None
    assert (thread.created_at, thread.updated_at, thread.conversation_id) == (
        NOON - SECOND,
        NOON,
        "conversation",
    )


async def test_odd_words_and_ids_come_back_unchanged(store: SqlStore):
    odd: JsonValue = {
        "big": 2**80,
        "text": "\U0001f600 \u2028 \u0000 'quote' \"double\" %s :x",
        "deep": [[[[{}]]]],
    }
    message = user_message("nul \u0000, \U0010ffff and 漢字", id="é %s :id '\"")
    await store.claim(claim_of("run:1 %(x)s", message, state=odd, meta=odd, input=odd, thread_id="t'é"))
    run = await store.get_run(NS, "t'é", "run:1 %(x)s")
    assert run is not None
    assert run.state == run.meta == run.input == odd
    assert [row.entry for row in await store.run_entries(NS, "run:1 %(x)s")] == [MessageEntry(message)]


async def test_text_that_no_database_can_hold_is_refused_whole(store: SqlStore):
    for claim in (
        claim_of("r1", asked("r1"), title="\ud800"),
        claim_of("r1", user_message("half a pair: \ud83d")),
        claim_of("r1\udfff", asked("r1")),
    ):
        with pytest.raises(InvalidInput):
            await store.claim(claim)
        assert await store.get_thread(NS, "t") is None
