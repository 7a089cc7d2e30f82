"""Requests to run, and the head of a thread they meet."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from app.agui.input import read_run_input
from app.agui.intake import Turn, take_turn
from app.clock import Instant
from app.conversation.outcomes import RunStatus
from app.store.adapter import HeadRecord, RunRecord

NOW = 1_700_000_000_000_000_000


class StillClock:
    def now(self) -> Instant:
        return NOW


def body(*messages: Any, **members: Any) -> dict[str, Any]:
    return {"threadId": "thread", "runId": "run", "messages": list(messages), **members}


def user(id: str, content: Any = "hello", **members: Any) -> dict[str, Any]:
    return {"id": id, "role": "user", "content": content, **members}


def assistant(id: str, **members: Any) -> dict[str, Any]:
    return {"id": id, "role": "assistant", "content": "hi", **members}


def tool(id: str, call: str = "c") -> dict[str, Any]:
    return {"id": id, "role": "tool", "toolCallId": call, "content": "seen"}


def head(*known: str, state: JsonValue = None, meta: Mapping[str, JsonValue] | None = None) -> HeadRecord:
    """A thread at rest whose branch holds the messages of these ids."""
    run = RunRecord(
        seq=1,
        id="earlier",
        thread_id="thread",
        agent="assistant",
        sender_id="ann",
        previous_run_id=None,
        parent_run_id=None,
        status=RunStatus.COMPLETED,
        end_reason="done",
        epoch=1,
        state=state,
        meta=meta,
        input=None,
        interrupts=(),
        usage=(),
        error=None,
        digest=None,
        created_at=NOW,
        ended_at=NOW,
    )
    return HeadRecord(None, run, dict.fromkeys(known, "earlier"))


EMPTY = HeadRecord(None, None)


def turn(
    request: dict[str, Any],
    at: HeadRecord = EMPTY,
    *,
    accepts: frozenset[str] = frozenset(),
    awaits_answer: bool = False,
) -> Turn:
    return take_turn(
        read_run_input(request),
        at,
        sender_id="ann",
        accepts=accepts,
        clock=StillClock(),
        awaits_answer=awaits_answer,
    )
