"""Tells a model which messages came while it was at work.

The note stands behind such a message and not in it: nothing that a person types can pass for one, and what a
person wrote stays as it is. It is made for each prompt of the run and never kept.
"""

from collections.abc import Collection, Sequence

from app.clock import Clock
from app.conversation.messages import Injected, Message, user_message

NOTICE = (
    "The message before this note came while you were at work. Take it into account at once; where it "
    "contradicts what was asked earlier, it counts."
)


def noticed(messages: Sequence[Message], arrived: Collection[str], clock: Clock) -> Sequence[Message]:
    """The messages with a note behind each whose id is in `arrived`."""
    if not arrived:
        return messages
    told: list[Message] = []
    for message in messages:
        told.append(message)
        if message.id in arrived:
            told.append(user_message(NOTICE, clock=clock, injected=Injected.EPHEMERAL, origin="steering"))
    return told
