"""A request and the stored branch make a turn: what is new, and what the run shall know beside it.

The history is the server's. A client's list tells what it has seen; only its new user messages add to it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from app.agui.encoding import canonical
from app.agui.input import RunInput, Said
from app.agui.messages import output_owner
from app.agui.metadata import SERVER_KEYS
from app.agui.parts import check_media
from app.clock import Clock
from app.conversation.blocks import Media, Reminder, Text
from app.conversation.entries import MessageEntry, StoredEntry
from app.conversation.messages import Injected, Message, user_message
from app.errors import InvalidInput
from app.store.adapter import KEEP, HeadRecord, Keep

_OURS = re.compile(r"think_[0-9a-f]{32}")
"""Ids of reasoning, which stand in a client's list beside those of messages and must not be taken."""
_CONTEXT = "context"
"""The origin of the reminder that carries a client's context, and the name of its digest in a run's meta."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a run starts with.

    `messages` are new on the branch, in order; no messages means: answer what is there. `ignored` counts
    messages of the client that are no history and were left out. `state` and `meta` are for the claim;
    `shown_state` is what holds then, `state_differs` whether the client sent something else.
    """

    messages: tuple[Message, ...]
    ignored: int
    dropped_parts: int
    state: JsonValue | Keep
    shown_state: JsonValue
    state_differs: bool
    meta: Mapping[str, JsonValue] | Keep
    input_record: dict[str, JsonValue]
    digest: str

    @property
    def entries(self) -> tuple[StoredEntry, ...]:
        return tuple(MessageEntry(message) for message in self.messages)


def take_turn(
    input: RunInput,
    head: HeadRecord,
    *,
    sender_id: str | None,
    accepts: frozenset[str],
    clock: Clock,
    awaits_answer: bool,
) -> Turn:
    """Reads the request against the head of its thread; nothing is stored.

    `head` was asked for `input.message_ids()`. `accepts` are the media the agent takes. `awaits_answer`:
    the branch ends in something that was not answered, so a request that brings nothing new asks for that.
    InvalidInput where a new message holds nothing to read or media that is not taken (named by its field),
    and, for `messages`, where there is nothing to answer.
    """
    new, ignored = _sort_out(input.messages, head.known)
    if not new and not awaits_answer:
        raise InvalidInput("There is no new user message, and nothing waits for an answer.", field="messages")
    messages = [_accept(said, sender_id, accepts, clock) for said in new]
    messages, meta = _add_context(messages, input, head, clock)
    stored = head.head.state if head.head is not None else None
    state: JsonValue | Keep = KEEP if input.state in (None, {}) else input.state
    shown = stored if isinstance(state, Keep) else state
    return Turn(
        messages=tuple(messages),
        ignored=ignored,
        dropped_parts=input.dropped_parts,
        state=state,
        shown_state=shown,
        state_differs=_canonical_state(shown) != _canonical_state(input.state),
        meta=meta,
        input_record=_record(input),
        digest=digest(input, {said.id for said in new}),
    )


def digest(input: RunInput, new: Collection[str]) -> str:
    """SHA-256, in hex, of what a request brings: its user messages of these ids, and all that is beside the
    messages. The same turn has the same digest whatever else its list holds."""
    material = {
        "messages": [_material(said) for said in input.messages if said.id in new and said.role == "user"],
        "tools": list(input.tools),
        "context": [list(item) for item in input.context],
        "state": input.state,
        "conversation": input.conversation,
    }
    return sha256(canonical(material)).hexdigest()


def _material(said: Said) -> dict[str, object]:
    content = [block.model_dump(mode="json", by_alias=True) for block in said.blocks]
    return {"id": said.id, "name": said.name, "content": content, "metadata": _own_metadata(said)}


def _sort_out(messages: Sequence[Said], known: Mapping[str, str]) -> tuple[list[Said], int]:
    """The new user messages, and how many messages are left out as no history.

    New is what a person said after the last message that the branch holds. What else the branch does not
    hold is not trusted, nor is a second message under one id.
    """
    last_known = max((said.index for said in messages if said.id in known), default=-1)
    new: list[Said] = []
    seen: set[str] = set()
    ignored = 0
    for said in messages:
        first = said.id not in seen
        seen.add(said.id)
        if first and _is_of_the_branch(said, known):
            continue
        if first and said.role == "user" and said.index > last_known:
            new.append(said)
        else:
            ignored += 1
    return new, ignored


def _is_of_the_branch(said: Said, known: Mapping[str, str]) -> bool:
    """Reasoning and the output of a provider's tool are parts of an assistant message, no entries."""
    return said.id in known or said.role == "reasoning" or output_owner(said.id) in known


def _accept(said: Said, sender_id: str | None, accepts: frozenset[str], clock: Clock) -> Message:
    """The message as it will be stored. Blank text is no content: no provider takes it."""
    if output_owner(said.id) is not None or _OURS.fullmatch(said.id):
        raise InvalidInput("This id is of the kind that the server makes.", field=f"messages/{said.index}/id")
    field = f"messages/{said.index}/content"
    blocks: list[Text | Media] = []
    for number, block in enumerate(said.blocks):
        if not isinstance(block, Text):
            place = said.places[number] if said.places else number
            check_media(block, accepts, f"{field}/{place}")
        elif not block.text.strip():
            continue
        blocks.append(block)
    if not blocks:
        raise InvalidInput("The message holds nothing to read.", field=field)
    return user_message(
        blocks,
        id=said.id,
        clock=clock,
        sender_id=sender_id,
        name=said.name,
        as_parts=said.as_parts,
        metadata=_own_metadata(said),
    )


def _own_metadata(said: Said) -> dict[str, JsonValue] | None:
    kept = {key: value for key, value in (said.metadata or {}).items() if key not in SERVER_KEYS}
    return kept or None


def _add_context(
    messages: list[Message], input: RunInput, head: HeadRecord, clock: Clock
) -> tuple[list[Message], Mapping[str, JsonValue] | Keep]:
    """Puts the client's context behind what the person wrote, for the model alone, unless the branch got
    the same last. A message of its own carries it where nobody wrote anything."""
    text = "\n".join(f"{description}: {value}" for description, value in input.context if value.strip())
    before = (head.head.meta if head.head is not None else None) or {}
    mark = sha256(text.encode()).hexdigest()
    if not text or before.get(_CONTEXT) == mark:
        return messages, KEEP
    reminder = Reminder(text=text, origin=_CONTEXT)
    if messages:
        last = messages[-1]
        added = [*messages[:-1], last.model_copy(update={"content": (*last.content, reminder)})]
    else:
        added = [user_message([reminder], clock=clock, injected=Injected.META, origin=_CONTEXT)]
    return added, {**before, _CONTEXT: mark}


def _canonical_state(state: JsonValue) -> bytes:
    return canonical({} if state is None else state)


def _record(input: RunInput) -> dict[str, JsonValue]:
    """What is kept of the request beside the run's own columns: no messages, no headers, and of
    `forwardedProps` only what is meant for the server, as the rest may hold secrets."""
    record: dict[str, JsonValue] = {
        "protocolVersion": input.protocol_version,
        "parentRunId": input.parent_run_id,
        "tools": list(input.tools),
        "context": [{"description": description, "value": value} for description, value in input.context],
        "conversation": input.conversation,
    }
    return {key: value for key, value in record.items() if value}
