"""What an agent tells, as AG-UI frames: one translator a run."""

from collections.abc import Callable, Sequence
from typing import Any

from app.agent.events import (
    Appended,
    MessageDone,
    RunDone,
    RunEvent,
    RunOpened,
    Snapshot,
    StateChanged,
    StepEnded,
    StepStarted,
    SubagentEnded,
    SubagentStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolDone,
    ToolProgress,
)
from app.agui.activities import activity_frame, passing_frame
from app.agui.brackets import Brackets
from app.agui.ends import opening, terminal
from app.agui.messages import server_outputs
from app.agui.metadata import authorship, message_metadata
from app.agui.progress import progress_frame
from app.agui.results import result_frame
from app.agui.shared_state import changed_frame, snapshot_frames
from app.agui.subagents import Subagents
from app.clock import Clock
from app.conversation.blocks import Text, Thinking, ToolCall
from app.conversation.entries import CustomEntry, MessageEntry, TransientEntry
from app.conversation.messages import Message, Role
from app.conversation.views import for_reader, reader_sees, reader_text
from app.frames import Frame

_Handler = Callable[[Any], Sequence[Frame]]


class Translator:
    """Turns the events of one run into frames that are legal in this order, whatever the agent does.

    A message that was told in deltas is closed with its metadata; what its deltas left out is told before
    that, so a message that comes without any is told whole. Nothing comes before `RunOpened`, and nothing
    after the first `RunDone`.
    """

    def __init__(self, clock: Clock) -> None:
        self._open = Brackets(clock)
        self._subagents = Subagents(self._open)
        self._run: RunOpened | None = None
        self._told: set[str] = set()
        """Ids of messages and activities that are complete on the wire."""
        self._held: set[str] = set()
        """Ids of messages that clients hold before they are stored."""
        self._handlers: dict[type, _Handler] = {RunOpened: self._opened, RunDone: self._done}

    def translate(self, event: RunEvent) -> Sequence[Frame]:
        """The frames of one event; none where readers get nothing of it."""
        handler = self._handlers.get(type(event))
        return handler(event) if handler is not None else ()

    def _opened(self, event: RunOpened) -> Sequence[Frame]:
        self._run = event
        self._told.update(item.id for item in (*event.accepted, *event.settled))
        self._held.update(message.id for message in event.held)
        brackets, subagents = self._open, self._subagents
        self._handlers = {
            TextDelta: self._text,
            ThinkingStarted: lambda event: brackets.start_thinking(event.thinking_id),
            ThinkingDelta: lambda event: brackets.thinking(event.thinking_id, event.delta),
            ThinkingEnded: self._thinking_ended,
            ToolCallStarted: self._call_started,
            ToolCallDelta: lambda event: brackets.call(event.call_id, event.delta),
            ToolCallEnded: lambda event: brackets.end_call(event.call_id),
            MessageDone: lambda event: self._message(event.message),
            ToolDone: lambda event: self._message(event.message),
            ToolProgress: lambda event: (progress_frame(event, brackets),),
            StateChanged: lambda event: (changed_frame(event, brackets),) if event.patch else (),
            SubagentStarted: subagents.start,
            SubagentEnded: subagents.end,
            Appended: self._appended,
            StepStarted: lambda event: brackets.start_step(event.name),
            StepEnded: lambda event: brackets.end_step(event.name),
            Snapshot: lambda event: [*self._close_all(), *snapshot_frames(event, brackets)],
            RunDone: self._done,
        }
        return opening(event, brackets)

    def _done(self, event: RunDone) -> Sequence[Frame]:
        self._handlers = {}
        return [*self._close_all(), terminal(self._run, event.end, self._open)]

    def _close_all(self) -> list[Frame]:
        return [*self._open.close_all(), *self._subagents.close_all()]

    def _text(self, event: TextDelta) -> Sequence[Frame]:
        brackets = self._open
        if event.message_id == brackets.text_id and event.delta:
            return (brackets.more_text(event.delta),)
        return brackets.text(event.message_id, event.delta) if event.message_id not in self._told else ()

    def _thinking_ended(self, event: ThinkingEnded) -> Sequence[Frame]:
        assert self._run is not None
        metadata = authorship(event.created_at, event.sender_id or self._run.agent)
        return self._open.end_thinking(event.thinking_id, metadata, event.encrypted)

    def _call_started(self, event: ToolCallStarted) -> Sequence[Frame]:
        if self._open.knows_call(event.call_id):
            return ()
        return self._open.start_call(event.message_id, event.call_id, event.name)

    def _appended(self, event: Appended) -> Sequence[Frame]:
        entry = event.entry
        if isinstance(entry, MessageEntry):
            return self._message(entry.message)
        if isinstance(entry, TransientEntry):
            return [passing_frame(entry, self._open)]
        return self._record(entry)

    def _record(self, entry: CustomEntry) -> Sequence[Frame]:
        if entry.id in self._told:
            return ()
        self._told.add(entry.id)
        return [activity_frame(entry, self._open)]

    def _message(self, message: Message) -> Sequence[Frame]:
        """A whole message. Readers never hear of an injected one, nor twice of any."""
        if not reader_sees(message) or message.id in self._told:
            return ()
        self._told.add(message.id)
        shown = for_reader(message)
        if message.role is Role.ASSISTANT:
            return self._assistant(shown)
        return self._result(shown) if message.role is Role.TOOL_RESULT else self._user(shown)

    def _user(self, message: Message) -> Sequence[Frame]:
        """A person's message that came while the run was under way; a stream carries its text alone. One that
        clients hold already gets the server's metadata."""
        frames = self._open.end_text()
        if message.id in self._held:
            return [*frames, *self._close(message)]
        frames += self._open.text(message.id, reader_text(message), role="user", name=message.name)
        return [*frames, *self._close(message)]

    def _assistant(self, message: Message) -> Sequence[Frame]:
        frames: list[Frame] = []
        if self._open.text_id != message.id:
            frames += self._open.end_text()
        before = 0
        for block in message.content:
            if isinstance(block, Text):
                missing = block.text[max(0, self._open.text_told(message.id) - before) :]
                frames += self._open.text(message.id, missing)
                before += len(block.text)
            elif isinstance(block, Thinking):
                frames += self._rest_of_thinking(message, block)
            elif isinstance(block, ToolCall):
                frames += self._rest_of_call(message, block)
        frames += self._close(message)
        for output in server_outputs(message):
            members = {"messageId" if key == "id" else key: value for key, value in output.items()}
            frames.append(self._open.event("TOOL_CALL_RESULT", members))
        return frames

    def _close(self, message: Message) -> list[bytes]:
        """The closing bracket, which promises that the message is stored. Where its text is not open any
        more, or never was, an empty bracket carries the metadata."""
        metadata = message_metadata(message)
        if self._open.text_id == message.id:
            return self._open.end_text(metadata)
        return self._open.empty_text(message.id, message.role.value, metadata)

    def _rest_of_thinking(self, message: Message, block: Thinking) -> list[bytes]:
        frames = self._open.start_thinking(block.id)
        frames += self._open.thinking(block.id, block.text[self._open.thinking_told(block.id) :])
        metadata = authorship(block.created_at, message.sender_id)
        return [*frames, *self._open.end_thinking(block.id, metadata, block.encrypted)]

    def _rest_of_call(self, message: Message, call: ToolCall) -> list[bytes]:
        frames: list[bytes] = []
        missing = call.arguments[self._open.call_told(call.id) :]
        if missing or not self._open.knows_call(call.id):
            frames += self._open.start_call(message.id, call.id, call.name)
            frames += self._open.call(call.id, missing)
        frames += self._open.end_call(call.id)
        return [*frames, *self._open.seal_call(call.id, call.encrypted)] if call.encrypted else frames

    def _result(self, message: Message) -> Sequence[Frame]:
        assert message.call_id is not None
        return [*self._open.end_call(message.call_id), result_frame(message, self._open)]
