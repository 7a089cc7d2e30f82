"""What an agent tells, as AG-UI frames: one translator a run."""

from collections.abc import Callable, Sequence
from typing import Any

from app.agent.events import (
    Appended,
    MessageDone,
    RunDone,
    RunEvent,
    RunOpened,
    StepEnded,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolDone,
)
from app.agui.brackets import Brackets
from app.agui.content import result_content
from app.agui.ends import opening, terminal, variants
from app.agui.messages import server_outputs
from app.agui.metadata import authorship, message_metadata
from app.clock import Clock
from app.conversation.blocks import Text, Thinking, ToolCall
from app.conversation.entries import MessageEntry
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
        self._run: RunOpened | None = None
        self._told: set[str] = set()
        """Ids of messages that are complete on the wire."""
        self._handlers: dict[type, _Handler] = {RunOpened: self._opened, RunDone: self._done}

    def translate(self, event: RunEvent) -> Sequence[Frame]:
        """The frames of one event; none where readers get nothing of it."""
        handler = self._handlers.get(type(event))
        return handler(event) if handler is not None else ()

    def _opened(self, event: RunOpened) -> Sequence[Frame]:
        self._run = event
        self._told.update(message.id for message in event.accepted)
        brackets = self._open
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
            Appended: self._appended,
            StepStarted: lambda event: brackets.start_step(event.name),
            StepEnded: lambda event: brackets.end_step(event.name),
            RunDone: self._done,
        }
        return opening(event, brackets)

    def _done(self, event: RunDone) -> Sequence[Frame]:
        self._handlers = {}
        return [*self._open.close_all(), terminal(self._run, event.end, self._open)]

    def _text(self, event: TextDelta) -> Sequence[Frame]:
        brackets = self._open
        if event.message_id == brackets.text_id and event.delta:
            return (brackets.more_text(event.delta),)
        return brackets.text(event.message_id, event.delta) if event.message_id not in self._told else ()

    def _thinking_ended(self, event: ThinkingEnded) -> Sequence[Frame]:
        assert self._run is not None
        metadata = authorship(event.created_at, self._run.agent)
        return self._open.end_thinking(event.thinking_id, metadata, event.encrypted)

    def _call_started(self, event: ToolCallStarted) -> Sequence[Frame]:
        if self._open.knows_call(event.call_id):
            return ()
        return self._open.start_call(event.message_id, event.call_id, event.name)

    def _appended(self, event: Appended) -> Sequence[Frame]:
        entry = event.entry
        if isinstance(entry, MessageEntry):
            return self._message(entry.message)
        return [self._open.event("CUSTOM", {"name": entry.name, "value": entry.value})]

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
        """A person's message that came while the run was under way; a stream carries its text alone."""
        frames = self._open.end_text()
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
        return [*frames, *self._open.end_call(call.id)]

    def _result(self, message: Message) -> Sequence[Frame]:
        assert message.call_id is not None
        result = {
            "messageId": message.id,
            "toolCallId": message.call_id,
            "role": "tool",
            "metadata": message_metadata(message),
        }
        told = variants(
            "TOOL_CALL_RESULT",
            {**result, "content": result_content(message)},
            {**result, "content": result_content(message, legacy=True)},
            self._open,
        )
        return [*self._open.end_call(message.call_id), told]
