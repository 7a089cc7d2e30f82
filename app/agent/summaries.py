"""Summaries in a history: how one is made, and the view of a history that has some.

A summary is a meta message that names the last message it covers. What it covers stays in the history; a
prompt made of the view holds the summary in its place.
"""

from collections.abc import Sequence

from app.clock import Clock
from app.conversation.messages import Injected, Message, user_message
from app.conversation.views import stands_for_others

HEADING = "Summary of what was said before:\n\n"


def summary_message(text: str, *, covers: str, origin: str, clock: Clock | None = None) -> Message:
    """The summary of everything up to the message of the id `covers`."""
    return user_message(HEADING + text, injected=Injected.META, origin=origin, covers=covers, clock=clock)


def newest_summary(messages: Sequence[Message]) -> int | None:
    """The index of the last summary."""
    for index in range(len(messages) - 1, -1, -1):
        if stands_for_others(messages[index]):
            return index
    return None


def projected(messages: Sequence[Message]) -> Sequence[Message]:
    """The newest summary and all that it does not cover, without the older ones, which it stands for too.

    Where the covered message is not among those before the summary, nothing of the list is known to be
    covered, and so all of it is shown: that is so with a history that was read from there on.
    """
    at = newest_summary(messages)
    if at is None:
        return messages
    summary = messages[at]
    start = next((index + 1 for index in range(at - 1, -1, -1) if messages[index].id == summary.covers), 0)
    return [summary, *(message for message in messages[start:] if not stands_for_others(message))]
