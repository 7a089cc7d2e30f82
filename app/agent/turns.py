"""Where a history may be cut, so that what stands behind the cut is a history of its own."""

from collections.abc import Sequence

from app.agent.pairing import spans
from app.conversation.messages import Message, Role
from app.conversation.views import reader_sees


def spoken(messages: Sequence[Message]) -> list[int]:
    """The indices of the messages that users wrote."""
    return [index for index, message in enumerate(messages) if _is_spoken(message)]


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """The indices at which turns begin: what users wrote one after the other, with no answer in between, is
    one turn."""
    starts: list[int] = []
    answered = True
    for index, message in enumerate(messages):
        if message.role is not Role.USER:
            answered = True
        elif answered and _is_spoken(message):
            starts.append(index)
            answered = False
    return starts


def sound_cuts(messages: Sequence[Message]) -> list[bool]:
    """For each index, the one behind the last too, whether the history may be cut before it.

    A cut is sound if every call before it has its result there too, so that none is torn from its result.
    A call without any result counts as open, and may get one yet, as long as the model has not gone on
    without it: no cut behind an open call is sound.
    """
    count = len(messages)
    answers = [index for index, message in enumerate(messages) if message.role is Role.ASSISTANT]
    ends = [0] * count
    for start, end in spans(messages):
        if end is None and start != answers[-1]:
            continue
        ends[start] = max(ends[start], (count if end is None else end) + 1)
    sound, reach = [True], 0
    for index in range(count):
        reach = max(reach, ends[index])
        sound.append(reach <= index + 1)
    return sound


def _is_spoken(message: Message) -> bool:
    return message.role is Role.USER and reader_sees(message)
