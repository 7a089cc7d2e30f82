"""What a client says, as it will be stored."""

import re
from dataclasses import dataclass

from pydantic import JsonValue

from app.agent.pairing import result_of
from app.agui.messages import output_owner
from app.agui.metadata import SERVER_KEYS
from app.agui.parts import check_media
from app.agui.said import Said
from app.clock import Clock
from app.conversation.blocks import Media, Text, ToolCall
from app.conversation.messages import Message, user_message
from app.errors import InvalidInput

_OURS = re.compile(r"think_[0-9a-f]{32}")
"""Ids of reasoning, which stand in a client's list beside those of messages and must not be taken."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a request is read: by which agent, for whom, with which media, at what time."""

    agent: str
    sender_id: str | None
    accepts: frozenset[str]
    clock: Clock


def check_new_id(id: str, field: str) -> None:
    """InvalidInput for an id that only the server makes."""
    if output_owner(id) is not None or _OURS.fullmatch(id):
        raise InvalidInput("This id is of the kind that the server makes.", field=field)


def accept_message(said: Said, terms: Terms) -> Message:
    """A new user message. Blank text is no content, for no provider takes it; InvalidInput if nothing is
    left."""
    check_new_id(said.id, f"{said.field}/id")
    blocks = _blocks(said, terms)
    if not blocks:
        raise InvalidInput("The message holds nothing to read.", field=f"{said.field}/content")
    return user_message(
        blocks,
        id=said.id,
        clock=terms.clock,
        sender_id=terms.sender_id,
        name=said.name,
        as_parts=said.as_parts,
        metadata=own_metadata(said),
    )


def accept_answer(call: ToolCall, said: Said, terms: Terms) -> Message:
    """A client's result of a call, under the id that the client gave it; an error is a text of its own where
    the content does not say it."""
    check_new_id(said.id, f"{said.field}/id")
    blocks = _blocks(said, terms)
    error = said.error
    if error is not None and not any(isinstance(block, Text) and error in block.text for block in blocks):
        blocks.append(Text(text=f"\n{error}" if blocks else error))
    return result_of(
        call, blocks, is_error=error is not None, id=said.id, clock=terms.clock, sender_id=terms.agent
    )


def _blocks(said: Said, terms: Terms) -> list[Text | Media]:
    blocks: list[Text | Media] = []
    for number, block in enumerate(said.blocks):
        if not isinstance(block, Text):
            place = said.places[number] if said.places else number
            check_media(block, terms.accepts, f"{said.field}/content/{place}")
        elif not block.text.strip():
            continue
        blocks.append(block)
    return blocks


def own_metadata(said: Said) -> dict[str, JsonValue] | None:
    """What the client attached, without what is the server's to say."""
    kept = {key: value for key, value in (said.metadata or {}).items() if key not in SERVER_KEYS}
    return kept or None
