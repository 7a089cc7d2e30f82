"""The stored conversation as a client's list of messages.

The rendering of an entry is made once, when it is stored, so that hydration joins texts. A few entries are
rendered on reading instead: those that 0.x clients get in another form, and those whose order depends on
what follows them.
"""

from collections.abc import Sequence

import orjson

from app.agui.activities import OPENING, activity_message
from app.agui.encoding import encode
from app.agui.messages import WireMessage, trailing_reasoning, wire_messages
from app.conversation.blocks import Media
from app.conversation.entries import CustomEntry, MessageEntry, StoredEntry
from app.store.adapter import WireRow

RENDERER: int = 2
"""Grows whenever a rendering changes; stored ones of another number are not used."""

_ACTIVITY = OPENING.encode()


def render(entry: StoredEntry, *, legacy: bool = False) -> str:
    """A JSON array of AG-UI messages; empty for what no reader sees."""
    return encode(_messages(entry, legacy)).decode()


class WireRenderer:
    """Makes what is stored beside an entry."""

    @property
    def version(self) -> int:
        return RENDERER

    def render(self, entry: StoredEntry) -> str | None:
        """The rendering; None where it has to be made on reading."""
        current = _messages(entry, legacy=False)
        if trailing_reasoning(current) or (_holds_parts(entry) and current != _messages(entry, legacy=True)):
            return None
        return encode(current).decode()


def hydrate(rows: Sequence[WireRow], *, legacy: bool) -> bytes:
    """One JSON array of the messages of all rows, oldest first.

    Clients put a result right behind the message that made the call. So activities, and reasoning that
    followed the calls of a message, go behind the results that come next, where a client that was there has
    them.
    """
    pieces: list[bytes] = []
    held: list[bytes] = []
    for row in rows:
        piece, tail = _piece(row, legacy)
        if piece.startswith(_ACTIVITY):
            held.append(piece)
            continue
        if held and not _answers_calls(piece):
            pieces += held
            held = []
        pieces.append(piece)
        if tail:
            held.append(_inner(encode(tail)))
    return b"[" + b",".join(piece for piece in (*pieces, *held) if piece) + b"]"


def _piece(row: WireRow, legacy: bool) -> tuple[bytes, list[WireMessage]]:
    """The row's messages without the brackets around them, and the reasoning that waits for results."""
    if row.wire is not None:
        return _inner(row.wire.encode()), []
    if row.entry is None:
        raise ValueError(f"row {row.seq} holds neither a rendering nor an entry")
    messages = _messages(row.entry, legacy)
    kept = len(messages) - trailing_reasoning(messages)
    return _inner(encode(messages[:kept])), messages[kept:]


def _messages(entry: StoredEntry, legacy: bool) -> list[WireMessage]:
    if isinstance(entry, CustomEntry):
        return [activity_message(entry)]
    return wire_messages(entry.message, legacy=legacy)


def _inner(array: bytes) -> bytes:
    return array[1:-1]


def _answers_calls(piece: bytes) -> bool:
    """Whether the row is results alone, or shows nothing."""
    return all(message["role"] == "tool" for message in orjson.loads(b"[" + piece + b"]"))


def _holds_parts(entry: StoredEntry) -> bool:
    """Only content in parts can look different to a 0.x client."""
    if not isinstance(entry, MessageEntry):
        return False
    message = entry.message
    return message.as_parts or any(isinstance(block, Media) for block in message.content)
