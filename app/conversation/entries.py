"""What a run is made of. What never reaches a model is a type of its own, not a flag on a message."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from app.clock import Instant, new_id
from app.conversation.messages import Message


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message of the conversation."""

    message: Message

    @property
    def id(self) -> str:
        return self.message.id


@dataclass(frozen=True, slots=True)
class CustomEntry:
    """An application's record: stored in order beside the messages, never shown to a model."""

    name: str
    value: JsonValue
    created_at: Instant | None = None
    sender_id: str | None = None
    id: str = field(default_factory=lambda: new_id("entry"))


@dataclass(frozen=True, slots=True)
class TransientEntry:
    """An application's record that is streamed and then gone: no store accepts it."""

    name: str
    value: JsonValue
    id: str = field(default_factory=lambda: new_id("entry"))


StoredEntry = MessageEntry | CustomEntry
Entry = StoredEntry | TransientEntry
