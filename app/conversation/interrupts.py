"""Questions that a run pauses on, and the answers that take it up again."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from app.clock import Instant
from app.conversation.words import Timestamp, Words


class InterruptReason(StrEnum):
    """Why a run asks; the names are AG-UI's."""

    TOOL_CALL = "tool_call"
    INPUT_REQUIRED = "input_required"


class ChildRun(Words):
    """The paused run of a sub-agent, in a thread of its own."""

    thread_id: str
    run_id: str


class Interrupt(Words):
    """One question of a paused run, as it is stored with the run.

    `call_id` names the tool call that waits, `response_schema` is the JSON schema of a fitting answer, and
    `expires_at` the time after which the question can only be cancelled. `child` is set where a sub-agent
    asks: the question is then its own and has the same id there.

    `memory` is what the waiting call needs when it is taken up again, such as answers that it got before. It
    never leaves the server.
    """

    id: str
    reason: str
    message: str | None = None
    call_id: str | None = None
    response_schema: dict[str, JsonValue] | None = None
    expires_at: Timestamp = None
    metadata: dict[str, JsonValue] | None = None
    child: ChildRun | None = None
    memory: dict[str, JsonValue] | None = None

    def expired(self, now: Instant) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client says to one interrupt. A cancelled one has no payload."""

    interrupt_id: str
    cancelled: bool = False
    payload: JsonValue = None
