"""What the contract tests say and ask, in few words."""

from collections.abc import Sequence
from typing import Any

from app.clock import Instant, parse_instant
from app.conversation.entries import MessageEntry, StoredEntry
from app.conversation.messages import Message, assistant_message, user_message
from app.conversation.outcomes import EndReason, RunEnd
from app.store.adapter import Claim, NewEntry, RunLedger, RunRecord, RunSave, ThreadAttributes, TurnRow

NS = "acme"
SECOND = 1_000_000_000
DONE = RunEnd(EndReason.DONE)


def instant(text: str) -> Instant:
    """The instant of an RFC 3339 time."""
    found = parse_instant(text)
    assert found is not None
    return found


NOON = instant("2026-03-01T12:00:00.000Z")


def attributes(**changes: Any) -> ThreadAttributes:
    """What a thread is made with."""
    values: dict[str, Any] = {"agent": "assistant", "created_at": NOON, "conversation_id": "c1"}
    return ThreadAttributes(**{**values, **changes})


def conversation_of(thread_id: str) -> str:
    """The conversation that a thread is made with here: `c1` for the usual one."""
    return "c1" if thread_id == "t" else f"conversation of {thread_id}"


def claim_of(run_id: str, *messages: Message, thread_id: str = "t", **changes: Any) -> Claim:
    """A claim of a run on a thread that is made where it is missing."""
    values: dict[str, Any] = {
        "namespace": NS,
        "thread_id": thread_id,
        "run_id": run_id,
        "thread": attributes(conversation_id=conversation_of(thread_id)),
        "agent": "assistant",
        "sender_id": "user",
        "created_at": NOON,
        "entries": new(*messages),
    }
    return Claim(**{**values, **changes})


def save_of(run_id: str, *messages: Message, thread_id: str = "t", **changes: Any) -> RunSave:
    """A save of a run."""
    values: dict[str, Any] = {
        "namespace": NS,
        "thread_id": thread_id,
        "run_id": run_id,
        "created_at": NOON,
        "conversation_id": conversation_of(thread_id),
        "entries": [MessageEntry(message) for message in messages],
    }
    return RunSave(**{**values, **changes})


def new(*messages: Message) -> list[NewEntry]:
    """Messages as entries to be stored."""
    return [NewEntry(MessageEntry(message)) for message in messages]


def asked(run_id: str) -> Message:
    """The question of a run; its id is `<run>-q`."""
    return user_message(f"question of {run_id}", id=f"{run_id}-q")


def answered(run_id: str) -> Message:
    """The answer of a run; its id is `<run>-a`."""
    return assistant_message(f"answer of {run_id}", id=f"{run_id}-a")


async def turn(store: RunLedger, run_id: str, at: Instant = NOON, **changes: Any) -> RunRecord:
    """A whole turn: a question that is claimed, an answer, and a good end."""
    run = await store.claim(claim_of(run_id, asked(run_id), created_at=at, **changes))
    await store.append(NS, run_id, new(answered(run_id)))
    assert await store.finish(NS, run_id, DONE, at)
    return run


def ids(entries: Sequence[StoredEntry]) -> list[str]:
    """The ids of entries."""
    return [entry.id for entry in entries]


def said(rows: Sequence[TurnRow]) -> list[tuple[str, list[str]]]:
    """Turns as (run id, entry ids)."""
    return [(row.run_id, ids(row.entries)) for row in rows]


def whole(*run_ids: str) -> list[tuple[str, list[str]]]:
    """What `said` gives for turns that `turn` made."""
    return [(run_id, [f"{run_id}-q", f"{run_id}-a"]) for run_id in run_ids]
