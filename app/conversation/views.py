"""Who reads what. The only module that looks at `injected` or takes Reminder blocks away.

A model reads every message. A reader sees what was said by people and models, without reminders.
A store keeps everything but the ephemeral.
"""

from collections.abc import Iterable

from app.conversation.blocks import Reminder, Text
from app.conversation.entries import CustomEntry, Entry, MessageEntry, StoredEntry, TransientEntry
from app.conversation.messages import Injected, Message, Role

TITLE_LENGTH = 80


def model_view(entries: Iterable[Entry]) -> list[Message]:
    """The messages, all of them: what a model reads. Application records are no messages."""
    return [entry.message for entry in entries if isinstance(entry, MessageEntry)]


def reader_sees(message: Message) -> bool:
    """Whether a reader may know that this message exists."""
    return message.injected is Injected.NONE


def stands_for_others(message: Message) -> bool:
    """Whether it is a summary, which a model reads in the place of what it covers. What a reader sees never
    is one, whoever says so of it."""
    return message.covers is not None and message.role is Role.USER and not reader_sees(message)


def stored_view(entries: Iterable[Entry]) -> list[StoredEntry]:
    """What a store keeps of these entries, in order."""
    return [entry for entry in entries if not isinstance(entry, TransientEntry) and _is_durable(entry)]


def _is_durable(entry: StoredEntry) -> bool:
    return isinstance(entry, CustomEntry) or store_keeps(entry.message)


def store_keeps(message: Message) -> bool:
    """Whether the message outlives its run."""
    return message.injected is not Injected.EPHEMERAL


def for_reader(message: Message) -> Message:
    """The message without what only a model reads."""
    if not any(isinstance(block, Reminder) for block in message.content):
        return message
    shown = tuple(block for block in message.content if not isinstance(block, Reminder))
    return message.model_copy(update={"content": shown})


def reader_view(messages: Iterable[Message]) -> list[Message]:
    """What a reader sees: no injected message, no reminder."""
    return [for_reader(message) for message in messages if reader_sees(message)]


def reader_text(message: Message) -> str:
    """The text a reader sees of one message, joined; empty for an injected one."""
    if not reader_sees(message):
        return ""
    return "".join(block.text for block in message.content if isinstance(block, Text))


def title(messages: Iterable[Message]) -> str | None:
    """The first line of the first text a person wrote, at most 80 code points and an ellipsis."""
    for message in reader_view(messages):
        if message.role is Role.USER:
            text = reader_text(message).strip()
            if text:
                return snippet(text.splitlines()[0])
    return None


def snippet(text: str, length: int = TITLE_LENGTH) -> str:
    """At most `length` code points of the text, with an ellipsis where it was cut."""
    text = text.strip()
    return text if len(text) <= length else text[:length].rstrip() + "…"
