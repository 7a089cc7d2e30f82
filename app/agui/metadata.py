"""What the server says about a message, in the one place that AG-UI leaves for it.

Live frames and hydration take it from here, so that a client holds the same after either.
"""

from app.clock import Instant, format_instant
from app.conversation.messages import Message, Role, StopReason

SERVER_KEYS = frozenset({"createdAt", "senderId"})
"""Keys that only the server sets; a client's values under them are not kept."""

_TOLD = frozenset({StopReason.LENGTH, StopReason.ERROR, StopReason.ABORTED})


def authorship(created_at: Instant | None, sender_id: str | None) -> dict[str, object]:
    """`createdAt` (RFC 3339, or null where it is not known) and, when known, `senderId`."""
    written: dict[str, object] = {"createdAt": None if created_at is None else format_instant(created_at)}
    if sender_id:
        written["senderId"] = sender_id
    return written


def message_metadata(message: Message) -> dict[str, object]:
    """The metadata of one message: a client's own members, then the server's over them.

    `isError: true` marks a failed tool result; `stopReason` an answer that was cut (`length`, `error`,
    `aborted`).
    """
    written: dict[str, object] = {}
    if message.role is Role.USER and message.metadata:
        written.update((key, value) for key, value in message.metadata.items() if key not in SERVER_KEYS)
    written.update(authorship(message.created_at, message.sender_id))
    if message.is_error:
        written["isError"] = True
    if message.stop_reason is not None and message.stop_reason in _TOLD:
        written["stopReason"] = message.stop_reason.value
    return written
