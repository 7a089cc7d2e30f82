"""What is open on the wire: one text, any reasoning, any tool calls, any steps.

Every method gives the frames of one change and refuses quietly what the protocol does not allow, such as
a piece of something that is not open. `told` counts say how much of a text a client has already.
"""

from dataclasses import dataclass

from app.agui.encoding import encode
from app.clock import Clock

Members = dict[str, object]


@dataclass(slots=True)
class _Stream:
    """Something that grows by deltas. `prefix` is all of its content frame up to the time."""

    prefix: bytes
    told: int = 0
    is_open: bool = True


class Brackets:
    """Opens and closes. Its frames are the same for every client."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._texts: dict[str, _Stream] = {}
        self._text: _Stream | None = None
        self._thinking: dict[str, _Stream] = {}
        self._calls: dict[str, _Stream] = {}
        self._steps: list[str] = []
        self.text_id: str | None = None
        """The message whose text is open."""

    def event(self, kind: str, members: Members) -> bytes:
        """One frame at the present time."""
        return encode({"type": kind, **members, "timestamp": self._clock.now() // 1_000_000})

    def _piece(self, stream: _Stream, delta: str) -> bytes:
        """One content frame: the hot path, with no dictionary and no model in between."""
        stream.told += len(delta)
        return b'%b%d,"delta":%b}' % (stream.prefix, self._clock.now() // 1_000_000, encode(delta))

    # Text

    def text(
        self, message_id: str, delta: str, role: str = "assistant", name: str | None = None
    ) -> list[bytes]:
        """More text of a message, which is opened (again) where it must be."""
        if not delta:
            return []
        if message_id == self.text_id:
            return [self.more_text(delta)]
        frames = self.end_text()
        stream = self._texts.get(message_id) or _Stream(
            _prefix("TEXT_MESSAGE_CONTENT", "messageId", message_id)
        )
        self._texts[message_id] = self._text = stream
        self.text_id = message_id
        start: Members = {"messageId": message_id, "role": role}
        frames.append(self.event("TEXT_MESSAGE_START", start if name is None else {**start, "name": name}))
        frames.append(self._piece(stream, delta))
        return frames

    def more_text(self, delta: str) -> bytes:
        """More of the text that is open."""
        stream = self._text
        assert stream is not None
        return self._piece(stream, delta)

    def end_text(self, metadata: Members | None = None) -> list[bytes]:
        if self.text_id is None:
            return []
        frame = self.event("TEXT_MESSAGE_END", _with({"messageId": self.text_id}, metadata))
        self.text_id = self._text = None
        return [frame]

    def empty_text(self, message_id: str, role: str, metadata: Members) -> list[bytes]:
        """A bracket without content: it brings metadata to a message that a client may hold already."""
        start: Members = {"messageId": message_id, "role": role, "metadata": metadata}
        return [
            self.event("TEXT_MESSAGE_START", start),
            self.event("TEXT_MESSAGE_END", {"messageId": message_id}),
        ]

    def text_told(self, message_id: str) -> int:
        """Code points of the message's text that were told."""
        return _told(self._texts, message_id)

    # Reasoning

    def start_thinking(self, thinking_id: str) -> list[bytes]:
        if thinking_id in self._thinking:
            return []
        self._thinking[thinking_id] = _Stream(_prefix("REASONING_MESSAGE_CONTENT", "messageId", thinking_id))
        return [
            *self.end_text(),
            self.event("REASONING_START", {"messageId": thinking_id}),
            self.event("REASONING_MESSAGE_START", {"messageId": thinking_id, "role": "reasoning"}),
        ]

    def thinking(self, thinking_id: str, delta: str) -> list[bytes]:
        stream = self._thinking.get(thinking_id)
        return [self._piece(stream, delta)] if stream is not None and stream.is_open and delta else []

    def end_thinking(
        self, thinking_id: str, metadata: Members | None = None, encrypted: str | None = None
    ) -> list[bytes]:
        stream = self._thinking.get(thinking_id)
        if stream is None or not stream.is_open:
            return []
        stream.is_open = False
        frames = [self.event("REASONING_MESSAGE_END", _with({"messageId": thinking_id}, metadata))]
        if encrypted:
            value: Members = {"subtype": "message", "entityId": thinking_id, "encryptedValue": encrypted}
            frames.append(self.event("REASONING_ENCRYPTED_VALUE", value))
        frames.append(self.event("REASONING_END", {"messageId": thinking_id}))
        return frames

    def thinking_told(self, thinking_id: str) -> int:
        return _told(self._thinking, thinking_id)

    # Tool calls

    def start_call(self, message_id: str, call_id: str, name: str) -> list[bytes]:
        """Opens a call of the message. A call that was closed is opened again, for what it lacks."""
        stream = self._calls.get(call_id)
        if stream is None:
            stream = self._calls[call_id] = _Stream(_prefix("TOOL_CALL_ARGS", "toolCallId", call_id))
        elif stream.is_open:
            return []
        stream.is_open = True
        start: Members = {"toolCallId": call_id, "toolCallName": name, "parentMessageId": message_id}
        return [*self.end_text(), self.event("TOOL_CALL_START", start)]

    def call(self, call_id: str, delta: str) -> list[bytes]:
        stream = self._calls.get(call_id)
        return [self._piece(stream, delta)] if stream is not None and stream.is_open and delta else []

    def end_call(self, call_id: str) -> list[bytes]:
        stream = self._calls.get(call_id)
        if stream is None or not stream.is_open:
            return []
        stream.is_open = False
        return [self.event("TOOL_CALL_END", {"toolCallId": call_id})]

    def seal_call(self, call_id: str, encrypted: str) -> list[bytes]:
        """The opaque value of a call that was told."""
        value: Members = {"subtype": "tool-call", "entityId": call_id, "encryptedValue": encrypted}
        return [self.event("REASONING_ENCRYPTED_VALUE", value)]

    def knows_call(self, call_id: str) -> bool:
        return call_id in self._calls

    def call_told(self, call_id: str) -> int:
        return _told(self._calls, call_id)

    # Steps and the end

    def start_step(self, name: str) -> list[bytes]:
        if name in self._steps:
            return []
        self._steps.append(name)
        return [self.event("STEP_STARTED", {"stepName": name})]

    def end_step(self, name: str) -> list[bytes]:
        if name not in self._steps:
            return []
        self._steps.remove(name)
        return [self.event("STEP_FINISHED", {"stepName": name})]

    def close_all(self) -> list[bytes]:
        """Closes whatever is open, innermost first."""
        frames = self.end_text()
        for thinking_id in self._thinking:
            frames += self.end_thinking(thinking_id)
        for call_id in self._calls:
            frames += self.end_call(call_id)
        for name in reversed(self._steps.copy()):
            frames += self.end_step(name)
        return frames


def _prefix(kind: str, key: str, id: str) -> bytes:
    return b'{"type":"%b","%b":%b,"timestamp":' % (kind.encode(), key.encode(), encode(id))


def _with(members: Members, metadata: Members | None) -> Members:
    return {**members, "metadata": metadata} if metadata is not None else members


def _told(streams: dict[str, _Stream], id: str) -> int:
    stream = streams.get(id)
    return stream.told if stream is not None else 0
