"""An application's records as AG-UI activities: messages of a role that clients show and never send back."""

from app.agui.brackets import Brackets, Members
from app.agui.metadata import authorship
from app.conversation.entries import CustomEntry, TransientEntry

Activity = dict[str, object]

OPENING = '{"role":"activity"'
"""How the JSON of an activity begins, and that of no other message."""


def activity_message(entry: CustomEntry) -> Activity:
    """The record as a message. Its role comes first, so that the JSON of one is known by its beginning."""
    return {
        "role": "activity",
        "id": entry.id,
        "activityType": entry.name,
        "content": _content(entry),
        "metadata": authorship(entry.created_at, entry.sender_id),
    }


def activity_frame(entry: CustomEntry, brackets: Brackets) -> bytes:
    """ACTIVITY_SNAPSHOT, from which a client makes that message."""
    members: Members = {
        "messageId": entry.id,
        "activityType": entry.name,
        "content": _content(entry),
        "metadata": authorship(entry.created_at, entry.sender_id),
    }
    return brackets.event("ACTIVITY_SNAPSHOT", members)


def passing_frame(entry: TransientEntry, brackets: Brackets) -> bytes:
    """CUSTOM: seen by whoever is there, and held by nobody."""
    return brackets.event("CUSTOM", {"name": entry.name, "value": entry.value})


def _content(entry: CustomEntry) -> object:
    """AG-UI wants an object; any other value stands in one."""
    return entry.value if isinstance(entry.value, dict) else {"value": entry.value}
