"""From the provider library's stream to the events of a model."""

from collections.abc import AsyncGenerator
from typing import Any

from pydantic_ai.messages import (
    FinishReason,
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
from pydantic_core import to_json, to_jsonable_python

from app.agent.models.base import CallPiece, Finished, ModelError, ModelEvent, TextPiece, ThinkingPiece
from app.conversation.messages import StopReason, Usage

_STOP_REASONS: dict[FinishReason | None, StopReason] = {
    None: StopReason.STOP,
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "tool_call": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_SEALED = frozenset({"redacted_thinking"})
"""Ids of reasoning parts whose signature is the reasoning itself, sealed."""


async def model_events(stream: StreamedResponse) -> AsyncGenerator[ModelEvent, None]:
    """The pieces of one response, `Finished` last. ModelError if a content filter stopped it."""
    async for event in stream:
        piece = _piece(event, stream.canonical_system)
        if piece is not None:
            yield piece
    if stream.finish_reason == "content_filter":
        raise ModelError("The provider's content filter stopped the answer.")
    yield Finished(
        _STOP_REASONS.get(stream.finish_reason, StopReason.STOP),
        usage=_usage(stream.usage),
        response_id=stream.provider_response_id,
        model=stream.model_name,
    )


def _piece(event: Any, system: str | None) -> ModelEvent | None:
    if isinstance(event, PartDeltaEvent):
        return _delta(event)
    if isinstance(event, PartStartEvent):
        return _start(event)
    return _end(event, system) if isinstance(event, PartEndEvent) else None


def _start(event: PartStartEvent) -> ModelEvent | None:
    part = event.part
    if isinstance(part, TextPart):
        return TextPiece(part.content)
    if isinstance(part, ThinkingPart):
        return ThinkingPiece(part.content, new=True)
    if isinstance(part, ToolCallPart):
        return CallPiece(
            str(event.index), _arguments(part.args), name=part.tool_name, call_id=part.tool_call_id
        )
    return None


def _delta(event: PartDeltaEvent) -> ModelEvent | None:
    delta = event.delta
    if isinstance(delta, TextPartDelta):
        return TextPiece(delta.content_delta)
    if isinstance(delta, ThinkingPartDelta):
        return ThinkingPiece(delta.content_delta or "")
    if isinstance(delta, ToolCallPartDelta):
        return CallPiece(str(event.index), _arguments(delta.args_delta))
    return None


def _end(event: PartEndEvent, system: str | None) -> ModelEvent | None:
    """What is known of a part only at its end: the opaque things that its provider wants to see again."""
    part = event.part
    notes = _notes(part, system)
    if isinstance(part, TextPart):
        return TextPiece("", provider=notes) if notes else None
    if isinstance(part, ToolCallPart):
        return CallPiece(str(event.index), provider=notes) if notes else None
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
    if not isinstance(part, TextPart | ThinkingPart | ToolCallPart):
        return None
    known = {"id": part.id, "details": to_jsonable_python(part.provider_details)}
    notes = {name: value for name, value in known.items() if value}
    if not notes and not isinstance(part, ThinkingPart):
        return None
    names = {"name": part.provider_name, "canonicalSystem": system}
    return {**notes, **{name: value for name, value in names.items() if value}}


def _arguments(args: object) -> str:
    """The text of arguments. An object that has no member yet is the place of one that is to come."""
    if isinstance(args, str):
        return args
    return to_json(args).decode() if args else ""


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
