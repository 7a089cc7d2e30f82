"""The contract between the loop and a model: a prompt in, a stream of small events out.

Parts of a response come one after the other: text, thinking and tool calls are never interleaved by a
model, except that several tool calls may be open side by side, told apart by `key`. A part ends when
another begins. The last event is `Finished`; a stream that ends without one was cut. Failures are raised
as `ModelError`. Closing the iterator closes the connection to the provider.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from app.agent.prompt import Prompt
from app.conversation.messages import StopReason, Usage


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More text. May be empty."""

    text: str
    new: bool = False
    """Whether the provider begins a new block of text here. It is kept apart from one before it that holds
    something for its provider."""
    provider: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """More reasoning. `signature` and `encrypted` are opaque and whole where they are given."""

    text: str
    signature: str | None = None
    encrypted: str | None = None
    new: bool = False
    """Whether a new Thinking block begins here although the last part was one too."""
    provider: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class CallPiece:
    """The start of a tool call (`name` given) or more of its arguments, as JSON text.

    `key` tells calls of one response apart. `call_id` comes with the name; an empty one is replaced by the
    loop with an id of its own.
    """

    key: str
    arguments: str = ""
    name: str | None = None
    call_id: str = ""
    provider: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A tool call that the provider ran itself, whole, with what it gave: `content` for readers, `raw` as the
    provider wants to see it again."""

    call_id: str
    name: str
    arguments: str
    server_type: str
    content: JsonValue = None
    raw: JsonValue = None
    is_error: bool = False
    provider: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The response is complete."""

    stop_reason: StopReason
    usage: Usage | None = None
    response_id: str | None = None
    model: str | None = None
    """The model that answered, where the provider names it."""


ModelEvent = TextPiece | ThinkingPiece | CallPiece | ServerCall | Finished


class ModelError(Exception):
    """The provider failed or cannot be reached.

    `public` is a sentence for clients, free of keys, addresses and exception text. `retryable` tells
    whether the same call may succeed later.
    """

    def __init__(self, public: str, *, retryable: bool = False, timeout: bool = False) -> None:
        super().__init__(public)
        self.public = public
        self.retryable = retryable
        self.timeout = timeout


class Model(Protocol):
    """Something that answers prompts."""

    @property
    def provider(self) -> str:
        """The provider's name, such as `openai`."""
        ...

    @property
    def name(self) -> str:
        """The model's name at its provider."""
        ...

    @property
    def inputs(self) -> frozenset[str]:
        """The media it takes beside text, of `image`, `audio`, `video`, `document`."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]: ...
