"""What one model call is given."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from app.conversation.messages import Message


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Prompt:
    """System text, history and tools: one to one what one provider call is given."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = field(default=())
