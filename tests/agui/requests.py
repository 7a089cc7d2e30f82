"""Requests to run, and the thread they meet."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from app.agui.accepting import Terms
from app.agui.branching import Place, branch_off, hear
from app.agui.client_calls import OpenCall
from app.agui.input import read_run_input
from app.agui.intake import NothingNew, Past, Turn, take_turn
from app.clock import Instant
from app.conversation.messages import Message
from app.conversation.views import model_view
from app.store.adapter import HeadRecord, RunRecord
from tests.agui.records import earlier, entry

NOW = 1_700_000_000_000_000_000


class StillClock:
    def now(self) -> Instant:
        return NOW


def body(*messages: Any, **members: Any) -> dict[str, Any]:
    return {"threadId": "thread", "runId": "run", "messages": list(messages), **members}


def user(id: str, content: Any = "hello", **members: Any) -> dict[str, Any]:
    return {"id": id, "role": "user", "content": content, **members}


def assistant(id: str, *calls: str, **members: Any) -> dict[str, Any]:
    made = [{"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call in calls]
    return {
        "id": id,
        "role": "assistant",
        "content": "hi",
        **({"toolCalls": made} if made else {}),
        **members,
    }


def tool(id: str, call: str = "c", content: Any = "seen", **members: Any) -> dict[str, Any]:
    return {"id": id, "role": "tool", "toolCallId": call, "content": content, **members}


def head(*known: str, state: JsonValue = None, meta: Mapping[str, JsonValue] | None = None) -> HeadRecord:
    """A thread at rest with one run, whose entries have these ids (see `entry`)."""
    return HeadRecord(None, earlier(state=state, meta=meta), dict.fromkeys(known, "earlier"))


EMPTY = HeadRecord(None, None)


def outcome(
    request: dict[str, Any],
    at: HeadRecord = EMPTY,
    *,
    accepts: frozenset[str] = frozenset(),
    awaits_answer: bool = False,
    calls: Sequence[OpenCall] = (),
    asked_by: RunRecord | None = None,
) -> Turn | NothingNew:
    """What a request comes to on a thread of one run."""
    read = read_run_input(request)
    heard = hear(read.messages, at.known)
    place = None
    if at.head is not None and heard.last_known is not None:
        place = Place(at.head, [entry(id) for id in at.known], at_tip=True)
    branch = branch_off(heard, place, read.options.previous_run_id, awaits=awaits_answer)
    past = Past(branch, asked_by or at.head, calls, asked_by)
    return take_turn(read, heard, past, Terms("assistant", "ann", accepts, StillClock()))


def turn(request: dict[str, Any], at: HeadRecord = EMPTY, **options: Any) -> Turn:
    taken = outcome(request, at, **options)
    assert isinstance(taken, Turn)
    return taken


def opening(taken: Turn) -> list[Message]:
    """The messages that open the run."""
    return model_view(taken.entries)
