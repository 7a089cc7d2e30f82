"""One flat message type with three roles, and the ways to make one."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Self

from pydantic import JsonValue, model_validator

from app.clock import Clock, SystemClock, new_id
from app.conversation.blocks import Block, Reminder, Text, ToolCall
from app.conversation.words import Timestamp, Words


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"


class Injected(StrEnum):
    """Who put a message into the history: `none` is the caller or the model, the others an injector.

    The two injected kinds differ in durability alone: meta survives a restart, ephemeral its run.
    """

    NONE = "none"
    META = "meta"
    EPHEMERAL = "ephemeral"


class StopReason(StrEnum):
    """Why a model stopped. Only `tool_use` makes the loop go on."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_USE = "tool_use"
    ERROR = "error"
    ABORTED = "aborted"


class Usage(Words):
    """Tokens as the provider counted them; a part that was not reported is None, not zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        def plus(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        return Usage(**{name: plus(getattr(self, name), getattr(other, name)) for name in Usage.model_fields})


_ASSISTANT_ONLY = ("provider", "model", "response_id", "usage", "stop_reason")
_TOOL_ONLY = ("call_id", "tool_name")


class Message(Words):
    """Something said. Fields that belong to one role are empty on the others; ValueError if they are not.

    `as_parts` tells that a user's content came as a list of parts, so that it is shown as one again.
    `metadata` is what a client attached to its own message. `covers` makes an injected message the summary of
    all that was said up to the message of that id.
    """

    id: str
    role: Role
    content: tuple[Block, ...]
    created_at: Timestamp = None
    sender_id: str | None = None
    name: str | None = None
    injected: Injected = Injected.NONE
    origin: str = ""
    as_parts: bool = False
    metadata: dict[str, JsonValue] | None = None
    covers: str | None = None
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    call_id: str | None = None
    tool_name: str | None = None
    is_error: bool = False

    @model_validator(mode="after")
    def _fields_fit_role(self) -> Self:
        if self.role is not Role.ASSISTANT:
            self._must_be_empty(_ASSISTANT_ONLY)
            if any(isinstance(block, ToolCall) for block in self.content):
                raise ValueError(f"a {self.role} message holds no tool calls")
        if self.role is not Role.TOOL_RESULT:
            self._must_be_empty(_TOOL_ONLY)
            if self.is_error:
                raise ValueError(f"is_error does not apply to a {self.role} message")
        elif not self.call_id or not self.tool_name:
            raise ValueError("a tool_result names the call and the tool it answers")
        return self

    def _must_be_empty(self, names: Iterable[str]) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ValueError(f"{name} does not apply to a {self.role} message")

    def text(self) -> list[Text | Reminder]:
        """The blocks that carry text, in document order; the caller decides which of them it may show."""
        return [block for block in self.content if isinstance(block, Text | Reminder)]

    def join_text(self, sep: str = "") -> str:
        """The text of exactly those blocks, joined. For models and other readers of everything."""
        return sep.join(block.text for block in self.text())

    def tool_calls(self) -> list[ToolCall]:
        """The calls that are ours to run: those that the provider ran itself are left out."""
        return [block for block in self.content if isinstance(block, ToolCall) and not block.server]


Content = str | Sequence[Block]


def _blocks(content: Content) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    return tuple(content)


def user_message(
    content: Content,
    *,
    id: str | None = None,
    clock: Clock | None = None,
    sender_id: str | None = None,
    name: str | None = None,
    injected: Injected = Injected.NONE,
    origin: str = "",
    as_parts: bool = False,
    metadata: dict[str, JsonValue] | None = None,
    covers: str | None = None,
) -> Message:
    """A user message with an id and the present time."""
    return Message(
        id=id or new_id("msg"),
        role=Role.USER,
        content=_blocks(content),
        created_at=(clock or SystemClock()).now(),
        sender_id=sender_id,
        name=name,
        injected=injected,
        origin=origin,
        as_parts=as_parts,
        metadata=metadata,
        covers=covers,
    )


def assistant_message(
    content: Content,
    *,
    id: str | None = None,
    clock: Clock | None = None,
    sender_id: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    response_id: str | None = None,
    usage: Usage | None = None,
    stop_reason: StopReason = StopReason.STOP,
    injected: Injected = Injected.NONE,
    origin: str = "",
) -> Message:
    """An assistant message with an id and the present time; `stop_reason` defaults to `stop`."""
    return Message(
        id=id or new_id("msg"),
        role=Role.ASSISTANT,
        content=_blocks(content),
        created_at=(clock or SystemClock()).now(),
        sender_id=sender_id,
        provider=provider,
        model=model,
        response_id=response_id,
        usage=usage,
        stop_reason=stop_reason,
        injected=injected,
        origin=origin,
    )


def tool_result_message(
    call_id: str,
    tool_name: str,
    content: Content,
    *,
    is_error: bool = False,
    id: str | None = None,
    clock: Clock | None = None,
    sender_id: str | None = None,
    injected: Injected = Injected.NONE,
    origin: str = "",
) -> Message:
    """A tool's answer to one call. Its id is made when it is made, and is the id that clients see."""
    return Message(
        id=id or new_id("msg"),
        role=Role.TOOL_RESULT,
        content=_blocks(content),
        created_at=(clock or SystemClock()).now(),
        sender_id=sender_id,
        call_id=call_id,
        tool_name=tool_name,
        is_error=is_error,
        injected=injected,
        origin=origin,
    )
