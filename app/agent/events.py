"""What an agent tells while it runs.

The order for one model response: deltas of its thinking, text and tool calls as they arrive, then
`MessageDone` with the whole message. A `ToolDone` follows for every call. Deltas are for the eye; only
`MessageDone`, `ToolDone` and `Appended` carry what is stored. `RunDone` is last, and there is always one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from app.clock import Instant
from app.conversation.entries import CustomEntry, Entry
from app.conversation.messages import Message
from app.conversation.outcomes import RunEnd


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run was claimed and its opening entries are stored. The server's own first event of every run.

    `accepted` are the messages of the client and the application's records that are new with this run, as
    stored. `state` is the thread's shared state, and `state_differs` whether it is not what the client sent.
    `replayed` tells that the run is being told again from storage.
    """

    thread_id: str
    run_id: str
    agent: str
    accepted: tuple[Message | CustomEntry, ...] = ()
    state: JsonValue = None
    state_differs: bool = False
    settled: tuple[Message, ...] = ()
    """Results that the server gave to calls which nobody answered, stored with the opening."""
    held: tuple[Message, ...] = ()
    """What a person said to a run that is taken up again: stored and told (`Appended`) behind its results."""
    parent_run_id: str | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the assistant message `message_id`. Never empty."""

    message_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ThinkingStarted:
    """A Thinking block `thinking_id` of the assistant message `message_id` begins."""

    message_id: str
    thinking_id: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    thinking_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ThinkingEnded:
    """The Thinking block is complete; `encrypted` is its opaque value, if it has one, and `sender_id` who
    thought, where that is known."""

    thinking_id: str
    created_at: Instant
    encrypted: str | None = None
    sender_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    message_id: str
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of the call's arguments, as JSON text. Never empty."""

    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    call_id: str


@dataclass(frozen=True, slots=True)
class MessageDone:
    """An assistant message is complete (or cut: see its stop reason).

    `last` promises that nothing but the end of the step and of the run follows, and at once: then message
    and end can be stored together.
    """

    message: Message
    last: bool = False


@dataclass(frozen=True, slots=True)
class ToolDone:
    """One call has its result."""

    message: Message


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A tool tells how far it is. `sequence` counts the reports of one call from 1."""

    call_id: str
    tool: str
    sequence: int
    progress: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The shared state was patched: `patch` holds the operations of RFC 6902, `state` what came of them."""

    patch: Sequence[dict[str, JsonValue]]
    state: JsonValue


@dataclass(frozen=True, slots=True)
class SubagentStarted:
    """A call is being answered by another agent, in the run `run_id` of a thread of its own."""

    run_id: str
    thread_id: str
    name: str
    description: str
    call_id: str


@dataclass(frozen=True, slots=True)
class SubagentEnded:
    run_id: str
    end: RunEnd


@dataclass(frozen=True, slots=True)
class Appended:
    """Something other than the model or a tool, such as a hook, added an entry to the history. A message
    bears its `injected` and `origin` here already, before anything is stored."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class StepStarted:
    name: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    name: str


@dataclass(frozen=True, slots=True)
class RunDone:
    """The last event of a run."""

    end: RunEnd


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The thread as it is stored, told before a run pauses. `messages` is a JSON array of AG-UI messages as
    text, `legacy_messages` the same for 0.x clients. The server's own event."""

    state: JsonValue
    messages: bytes
    legacy_messages: bytes


AgentEvent = (
    TextDelta
    | ThinkingStarted
    | ThinkingDelta
    | ThinkingEnded
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallEnded
    | MessageDone
    | ToolDone
    | ToolProgress
    | StateChanged
    | SubagentStarted
    | SubagentEnded
    | Appended
    | StepStarted
    | StepEnded
    | RunDone
)
RunEvent = RunOpened | Snapshot | AgentEvent
