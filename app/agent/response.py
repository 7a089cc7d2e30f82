"""One model response as it grows: a model's pieces in, events and at last one message out."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from app.agent.events import (
    AgentEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from app.agent.models.base import (
    CallPiece,
    Finished,
    Model,
    ModelEvent,
    ServerCall,
    TextPiece,
    ThinkingPiece,
)
from app.agent.pairing import NAMELESS
from app.agent.scrub import DeltaScrubber, scrub, scrub_json
from app.clock import Clock, Instant, new_id
from app.conversation.blocks import Block, ServerToolOutput, Text, Thinking, ToolCall
from app.conversation.messages import Message, Role, StopReason

_log = logging.getLogger(__name__)
_LONGEST_CALL_ID = 200
_SHORTEST_UNIQUE_ID = 16

Provider = dict[str, JsonValue]


@dataclass(slots=True)
class _Growing:
    """A text in pieces, scrubbed."""

    pieces: list[str] = field(default_factory=list[str])
    door: DeltaScrubber = field(default_factory=DeltaScrubber)
    provider: Provider | None = None

    def add(self, piece: str) -> str:
        ready = self.door.take(piece)
        if ready:
            self.pieces.append(ready)
        return ready

    def finish(self) -> str:
        rest = self.door.rest()
        if rest:
            self.pieces.append(rest)
        return rest

    def remember(self, provider: Provider | None) -> None:
        if provider:
            self.provider = {**(self.provider or {}), **provider}

    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class _TextPart(_Growing):
    shown: bool = False
    """Space before the first word waits for it: a text of nothing but space is neither shown nor kept."""

    def block(self) -> Block | None:
        return Text(text=self.text(), provider=self.provider) if self.shown else None


@dataclass(slots=True)
class _ThinkingPart(_Growing):
    id: str = field(default_factory=lambda: new_id("think"))
    signature: str | None = None
    encrypted: str | None = None
    ended_at: Instant | None = None

    def block(self) -> Block:
        return Thinking(
            id=self.id,
            text=self.text(),
            signature=self.signature,
            encrypted=self.encrypted,
            created_at=self.ended_at,
            provider=self.provider,
        )


@dataclass(slots=True)
class _CallPart(_Growing):
    id: str = ""
    name: str = ""
    is_open: bool = True

    def block(self) -> Block:
        return ToolCall(id=self.id, name=self.name, arguments=self.text(), provider=self.provider)


@dataclass(slots=True)
class _ServerPart:
    call: ToolCall

    def block(self) -> Block:
        return self.call


_Part = _TextPart | _ThinkingPart | _CallPart | _ServerPart


class Response:
    """Collects what a model says to one request, under one message id. A request that is made again has a
    new one. `used` are the call ids that are taken already, `sender_id` is who says it. With `own_ids` a
    short call id of the provider's is replaced too, where not all that are taken can be known.
    """

    def __init__(
        self, clock: Clock, used: set[str], sender_id: str | None = None, *, own_ids: bool = False
    ) -> None:
        self.message_id = new_id("msg")
        self.finished: Finished | None = None
        self._clock = clock
        self._used = used
        self._sender_id = sender_id
        self._shortest_id = _SHORTEST_UNIQUE_ID if own_ids else 1
        self._parts: list[_Part] = []
        self._calls: dict[str, _CallPart] = {}
        self._current: _TextPart | _ThinkingPart | None = None

    @property
    def begun(self) -> bool:
        """Whether anything was told of it, so that it cannot be asked for again."""
        return any(not isinstance(part, _TextPart) or part.shown for part in self._parts)

    def take(self, event: ModelEvent) -> Iterable[AgentEvent]:
        """What to tell of one more piece."""
        if isinstance(event, TextPiece):
            part = self._current
            if isinstance(part, _TextPart) and part.shown and event.provider is None and not event.new:
                ready = part.add(event.text)
                return (TextDelta(self.message_id, ready),) if ready else ()
            return self._text(event)
        if isinstance(event, CallPiece):
            return self._call(event)
        if isinstance(event, ThinkingPiece):
            return self._thinking(event)
        if isinstance(event, ServerCall):
            return self._server_call(event)
        self.finished = event
        return ()

    def close(self) -> Iterator[AgentEvent]:
        """Ends every part that is open."""
        part, self._current = self._current, None
        if isinstance(part, _TextPart):
            yield from self._show(part, part.finish())
        elif part is not None:
            if rest := part.finish():
                yield ThinkingDelta(part.id, rest)
            part.ended_at = self._clock.now()
            yield ThinkingEnded(part.id, part.ended_at, part.encrypted, self._sender_id)
        for call in self._calls.values():
            if call.is_open:
                if rest := call.finish():
                    yield ToolCallDelta(call.id, rest)
                call.is_open = False
                yield ToolCallEnded(call.id)

    def message(self, stop_reason: StopReason, model: Model) -> Message | None:
        """The whole message, at the present time. None if the model said nothing at all."""
        blocks = [block for part in self._parts if (block := part.block()) is not None]
        if not blocks:
            return None
        finished = self.finished
        return Message(
            id=self.message_id,
            role=Role.ASSISTANT,
            content=tuple(blocks),
            created_at=self._clock.now(),
            sender_id=self._sender_id,
            provider=model.provider,
            model=(finished.model if finished else None) or model.name,
            response_id=finished.response_id if finished else None,
            usage=finished.usage if finished else None,
            stop_reason=stop_reason,
        )

    def stop_reason(self) -> StopReason:
        """Why a finished response stopped. A model that made calls wants them answered, whatever it says,
        unless its token limit cut it: then the last of them may be half a call."""
        assert self.finished is not None
        told = self.finished.stop_reason
        if told in (StopReason.LENGTH, StopReason.ERROR, StopReason.ABORTED):
            return told
        return StopReason.TOOL_USE if self._calls else StopReason.STOP

    def _text(self, piece: TextPiece) -> Iterator[AgentEvent]:
        part = self._current
        if not isinstance(part, _TextPart) or (piece.new and part.provider):
            if not piece.text:
                return
            yield from self.close()
            part = self._current = _TextPart()
            self._parts.append(part)
        part.remember(piece.provider)
        yield from self._show(part, part.add(piece.text))

    def _show(self, part: _TextPart, ready: str) -> Iterator[AgentEvent]:
        if not ready:
            return
        if not part.shown:
            if ready.isspace():
                return
            part.shown = True
            ready = part.text()
        yield TextDelta(self.message_id, ready)

    def _thinking(self, piece: ThinkingPiece) -> Iterator[AgentEvent]:
        if piece.new and isinstance(self._current, _ThinkingPart):
            yield from self.close()
        part = self._current
        if not isinstance(part, _ThinkingPart):
            if not (piece.text or piece.signature or piece.encrypted):
                return
            yield from self.close()
            part = self._current = _ThinkingPart()
            self._parts.append(part)
            yield ThinkingStarted(self.message_id, part.id)
        part.remember(piece.provider)
        part.signature = piece.signature or part.signature
        part.encrypted = piece.encrypted or part.encrypted
        if ready := part.add(piece.text):
            yield ThinkingDelta(part.id, ready)

    def _call(self, piece: CallPiece) -> Iterator[AgentEvent]:
        part = self._calls.get(piece.key)
        if part is None:
            if piece.name is None:
                _log.warning("the model sent arguments for a call that it did not start")
                return
            if self._current is not None:
                yield from self.close()
            part = _CallPart(id=self._free_id(piece.call_id), name=_name(piece.name))
            self._calls[piece.key] = part
            self._parts.append(part)
            yield ToolCallStarted(self.message_id, part.id, part.name)
        part.remember(piece.provider)
        # Arguments that straggle in behind a part that ended the call count, but can no longer be shown.
        if (ready := part.add(piece.arguments)) and part.is_open:
            yield ToolCallDelta(part.id, ready)

    def _server_call(self, call: ServerCall) -> Iterator[AgentEvent]:
        yield from self.close()
        block = ToolCall(
            id=self._free_id(call.call_id),
            name=_name(call.name),
            arguments=scrub(call.arguments),
            server=True,
            server_type=call.server_type,
            output=ServerToolOutput(
                content=scrub_json(call.content), raw=scrub_json(call.raw), is_error=call.is_error
            ),
            provider=call.provider,
        )
        self._parts.append(_ServerPart(block))
        yield ToolCallStarted(self.message_id, block.id, block.name)
        if block.arguments:
            yield ToolCallDelta(block.id, block.arguments)
        yield ToolCallEnded(block.id)

    def _free_id(self, given: str) -> str:
        sound = given.isprintable() and self._shortest_id <= len(given) <= _LONGEST_CALL_ID
        call_id = given if sound and given not in self._used else new_id("call")
        self._used.add(call_id)
        return call_id


def _name(given: str) -> str:
    return scrub(given) or NAMELESS
