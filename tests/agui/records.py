"""Runs as a store gives them back."""

from dataclasses import replace
from typing import Any

from app.conversation.entries import CustomEntry, MessageEntry, StoredEntry
from app.conversation.messages import Injected, assistant_message, tool_result_message, user_message
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from app.store.adapter import RunRecord

MOMENT = 1_700_000_000_000_000_000


def record(end: RunEnd, *, status: RunStatus | None = None, reason: str | None = None) -> RunRecord:
    return RunRecord(
        seq=1,
        id="run",
        thread_id="thread",
        agent="assistant",
        sender_id="ann",
        previous_run_id=None,
        parent_run_id=None,
        status=status or end.status,
        end_reason=reason or end.reason.value,
        epoch=1,
        state={"n": 1},
        meta=None,
        input=None,
        interrupts=[
            interrupt.model_dump(mode="json", by_alias=True, exclude_none=True)
            for interrupt in end.interrupts
        ],
        usage=[
            {"provider": provider, "model": model, **usage.model_dump(mode="json", by_alias=True)}
            for provider, model, usage in end.usage
        ],
        error={"code": end.error.code, "message": end.error.message} if end.error else None,
        digest=None,
        created_at=MOMENT,
        ended_at=MOMENT + 5_000_000,
        result=end.result,
    )


def earlier(end: EndReason = EndReason.DONE, **changes: Any) -> RunRecord:
    """The run `earlier` of a thread, with no state."""
    return replace(record(RunEnd.by(end)), **{"id": "earlier", "state": None, **changes})


def entry(id: str) -> StoredEntry:
    """An entry whose kind is told by the first letter of its id: u(ser), a(ssistant), t(ool result),
    m(eta message), and anything else is a record of the application."""
    match id[0]:
        case "u":
            return MessageEntry(user_message("hello", id=id))
        case "a":
            return MessageEntry(assistant_message("hi", id=id))
        case "t":
            return MessageEntry(tool_result_message("c", "look", "seen", id=id))
        case "m":
            return MessageEntry(user_message("hush", id=id, injected=Injected.META))
        case _:
            return CustomEntry("note", 1, id=id)
