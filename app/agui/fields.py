"""Names of fields in refusals."""

from collections.abc import Iterable

_NAMES = """
threadId runId parentRunId protocolVersion messages state tools context forwardedProps resume conversation
groupId parentThreadId hidden busy onDisconnect previousRunId id role content name metadata encryptedValue
toolCalls toolCallId type function arguments error activityType text source value mimeType provider
description parameters interruptId status payload
"""
PROTOCOL_NAMES = frozenset(_NAMES.split())
"""The names that a refusal may repeat; all others are the client's words."""


def field_path(segments: Iterable[str]) -> str | None:
    """The path, as far as it consists of positions and the protocol's own names."""
    kept: list[str] = []
    for segment in segments:
        if not segment.isdecimal() and segment not in PROTOCOL_NAMES:
            break
        kept.append(segment)
    return "/".join(kept) or None
