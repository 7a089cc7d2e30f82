"""Branches that contract tests make, and how they read them."""

from typing import Any

from app.conversation.interrupts import Interrupt
from app.conversation.messages import Message, assistant_message, user_message
from app.conversation.outcomes import EndReason, RunEnd
from app.store.adapter import RunLedger, ThreadStore
from tests.contracts.turns import NOON, NS, claim_of, ids, new

QUESTION = Interrupt(id="i1", reason="tool_call", call_id="c1", message="May I?", memory={"asked": 1})
ASKING = RunEnd(EndReason.INTERRUPTED, interrupts=(QUESTION,))


def words(name: str) -> Message:
    """A message by its id: `…-q` a question, anything else an answer."""
    return user_message(name, id=name) if name.endswith("-q") else assistant_message(name, id=name)


async def run(store: RunLedger, run_id: str, *said: str, end: RunEnd | None = None, **changes: Any) -> None:
    """A run that holds these messages, ended."""
    await store.claim(claim_of(run_id, *(words(name) for name in said[:1]), **changes))
    await store.append(NS, run_id, new(*(words(name) for name in said[1:])))
    assert await store.finish(NS, run_id, end or RunEnd(EndReason.DONE), NOON)


async def branch(store: ThreadStore, thread_id: str = "t", run_id: str | None = None) -> list[str]:
    """The ids of all entries of a branch; every way to read it must say the same."""
    turns = await store.transcript(NS, thread_id, run_id)
    whole = [name for turn in turns for name in ids(turn.entries)]
    paged: list[str] = []
    before: str | None = None
    while True:
        page = await store.transcript_page(NS, thread_id, limit=1, before_run_id=before, run_id=run_id)
        paged = [name for turn in page.rows for name in ids(turn.entries)] + paged
        before = page.next_before_run_id
        if before is None:
            break
    assert paged == whole
    assert await _messages(store, thread_id, run_id, None) == whole
    assert await _messages(store, thread_id, run_id, 1) == whole
    if run_id is None:
        thread = await store.get_thread(NS, thread_id)
        counted = (0, 0) if thread is None else (thread.run_count, thread.message_count)
        assert counted == (len(turns), len(whole))
    return whole


async def _messages(store: ThreadStore, thread_id: str, run_id: str | None, limit: int | None) -> list[str]:
    found: list[str] = []
    before: str | None = None
    while True:
        page = await store.messages(
            NS, thread_id, renderer=1, limit=limit, before=before, run_id=None if before else run_id
        )
        found = [row.entry.id for row in page.rows if row.entry] + found
        before = page.next_before
        if before is None:
            return found
