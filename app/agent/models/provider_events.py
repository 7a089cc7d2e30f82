"""From the provider library's stream to the events of a model."""

import logging
from collections.abc import AsyncGenerator
from typing import Any

from pydantic_ai.messages import (
    FinishReason,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import StreamedResponse
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from app.agent.models.base import CallPiece, Finished, ModelError, ModelEvent, TextPiece, ThinkingPiece
from app.agent.models.server_tools import arguments_text, server_call
from app.conversation.messages import StopReason, Usage

_log = logging.getLogger(__name__)

_STOP_REASONS: dict[FinishReason | None, StopReason] = {
    None: StopReason.STOP,
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "tool_call": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_PAUSE = "pause_turn"
"""Anthropic's reason for a break in a long turn of tools that it runs itself."""
_SEALED = frozenset({"redacted_thinking"})
"""Ids of reasoning parts whose signature is the reasoning itself, sealed."""


class Answer:
    """The answer to one prompt as it comes, from one response or from several that go on with each other."""

    def __init__(self) -> None:
        self.paused = False
        """Whether the provider broke off and waits to be asked to go on, given what it said so far."""
        self._open: dict[str, NativeToolCallPart] = {}
        """Calls that the provider runs itself and has given no result of, by their id."""
        self._theirs: set[str] = set()
        """Keys of the parts that are such calls."""
        self._responses = 0
        self._usage: Usage | None = None

    async def pieces(self, stream: StreamedResponse) -> AsyncGenerator[ModelEvent, None]:
        """The pieces of one response, `Finished` last if it is the last one. ModelError if a content filter
        stopped it."""
        self._responses += 1
        self.paused = False
        async for event in stream:
            piece = self._piece(event, stream)
            if piece is not None:
                yield piece
        if stream.finish_reason == "content_filter":
            raise ModelError("The provider's content filter stopped the answer.")
        self._remember(stream)
        self._count(_usage(stream.usage))
        self.paused = (stream.provider_details or {}).get("finish_reason") == _PAUSE
        if stream.state == "complete":
            yield Finished(
                _STOP_REASONS.get(stream.finish_reason, StopReason.STOP),
                usage=self._usage,
                response_id=stream.provider_response_id,
                model=stream.model_name,
            )

    def _piece(self, event: Any, stream: StreamedResponse) -> ModelEvent | None:
        if isinstance(event, PartDeltaEvent):
            key = self._key(event.index)
            return None if key in self._theirs else _delta(event, key)
        if isinstance(event, PartStartEvent):
            return self._started(event, stream)
        if isinstance(event, PartEndEvent):
            return _end(event, self._key(event.index), stream.canonical_system)
        return None

    def _started(self, event: PartStartEvent, stream: StreamedResponse) -> ModelEvent | None:
        key, part = self._key(event.index), event.part
        if isinstance(part, NativeToolCallPart):
            self._theirs.add(key)
            return None
        if isinstance(part, NativeToolReturnPart):
            self._remember(stream)
            call = self._open.get(part.tool_call_id)
            if call is None:
                _log.warning("skipped a result of a tool that the provider did not say it had called")
                return None
            return server_call(call, part, _notes(call, stream.canonical_system))
        return _start(event, key)

    def _remember(self, stream: StreamedResponse) -> None:
        for part in stream.get().parts:
            if isinstance(part, NativeToolCallPart):
                self._open[part.tool_call_id] = part

    def _key(self, index: int) -> str:
        return f"{self._responses}.{index}"

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage + usage


def _start(event: PartStartEvent, key: str) -> ModelEvent | None:
    part = event.part
    if isinstance(part, TextPart):
        return TextPiece(part.content, new=True)
    if isinstance(part, ThinkingPart):
        return ThinkingPiece(part.content, new=True)
    if isinstance(part, ToolCallPart):
        return CallPiece(key, arguments_text(part.args), name=part.tool_name, call_id=part.tool_call_id)
    return None


def _delta(event: PartDeltaEvent, key: str) -> ModelEvent | None:
    delta = event.delta
    if isinstance(delta, TextPartDelta):
        return TextPiece(delta.content_delta)
    if isinstance(delta, ThinkingPartDelta):
        return ThinkingPiece(delta.content_delta or "")
    if isinstance(delta, ToolCallPartDelta):
        return CallPiece(key, arguments_text(delta.args_delta))
    return None


def _end(event: PartEndEvent, key: str, system: str | None) -> ModelEvent | None:
    """What is known of a part only at its end: the opaque things that its provider wants to see again."""
    part = event.part
    notes = _notes(part, system)
    if isinstance(part, TextPart):
        return TextPiece("", provider=notes) if notes else None
    if isinstance(part, ToolCallPart):
        return CallPiece(key, provider=notes) if notes else None
    if isinstance(part, ThinkingPart):
        sealed = part.id in _SEALED or not part.content
        return ThinkingPiece(
            "",
            signature=None if sealed else part.signature,
            encrypted=part.signature if sealed else None,
            provider=notes,
        )
    return None


def _notes(part: Any, system: str | None) -> dict[str, Any] | None:
    if not isinstance(part, TextPart | ThinkingPart | ToolCallPart | NativeToolCallPart):
        return None
    known = {"id": part.id, "details": to_jsonable_python(part.provider_details)}
    if isinstance(part, TextPart):
        known["citations"] = to_jsonable_python(part.citations)
    notes = {name: value for name, value in known.items() if value}
    if not notes and not isinstance(part, ThinkingPart | NativeToolCallPart):
        return None
    names = {"name": part.provider_name, "canonicalSystem": system}
    return {**notes, **{name: value for name, value in names.items() if value}}


def _usage(counted: RequestUsage) -> Usage | None:
    if not counted.has_values():
        return None
    return Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        total_tokens=counted.total_tokens,
        reasoning_tokens=counted.details.get("reasoning_tokens"),
        cached_input_tokens=counted.cache_read_tokens or None,
        cache_write_input_tokens=counted.cache_write_tokens or None,
    )
