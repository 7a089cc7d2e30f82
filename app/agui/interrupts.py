"""A question of a paused run, by AG-UI's names."""

from app.clock import format_instant
from app.conversation.interrupts import Interrupt


def wire_interrupt(interrupt: Interrupt) -> dict[str, object]:
    """`{id, reason, message?, toolCallId?, responseSchema?, expiresAt?, metadata?, subagentRunId?}`; what is
    not known is left out, and what only the server needs stays in it. `expiresAt` is RFC 3339."""
    expires_at, child = interrupt.expires_at, interrupt.child
    written: dict[str, object] = {
        "id": interrupt.id,
        "reason": interrupt.reason,
        "message": interrupt.message,
        "toolCallId": interrupt.call_id,
        "responseSchema": interrupt.response_schema,
        "expiresAt": None if expires_at is None else format_instant(expires_at),
        "metadata": interrupt.metadata,
        "subagentRunId": None if child is None else child.run_id,
    }
    return {name: value for name, value in written.items() if value is not None}
