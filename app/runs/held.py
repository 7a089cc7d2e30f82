"""Messages that were accepted with a run and are said later in it.

They are stored with the run's input when it is claimed, so that no crash loses them, and become entries when
they are said, or at the run's end.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from app.conversation.entries import MessageEntry
from app.conversation.messages import Message

_KEY = "held"


def with_held(
    input: Mapping[str, JsonValue] | None, held: Sequence[Message]
) -> Mapping[str, JsonValue] | None:
    """The input to be stored."""
    if not held:
        return input
    return {**(input or {}), _KEY: [message.model_dump(mode="json", by_alias=True) for message in held]}


def held_in(input: Mapping[str, JsonValue] | None) -> list[Message]:
    """The messages in a stored input."""
    stored = (input or {}).get(_KEY)
    return [Message.model_validate(one) for one in stored] if isinstance(stored, list) else []


def unsaid(held: Iterable[Message], said: Iterable[Message]) -> list[MessageEntry]:
    """Those that are no entries of the run yet."""
    known = {message.id for message in said}
    return [MessageEntry(message) for message in held if message.id not in known]
