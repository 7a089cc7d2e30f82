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
class OutputSchema:
    """The form of a structured answer: a JSON schema of an object, with a name for the provider."""

    name: str
    schema: dict[str, JsonValue]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """System text, history and tools: one to one what one provider call is given.

    With `output` the answer's text is to be JSON of that form.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition] = field(default=())
    output: OutputSchema | None = None
