"""What hooks return to be shown to a model or to be appended: copies, checked and completed."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from app.agent.hook_call import HookFailed, name_of
from app.agent.hooks import Addition
from app.agent.records import checked_record
from app.agent.scrub import scrub_json
from app.clock import Clock, new_id
from app.conversation.blocks import ToolCall
from app.conversation.entries import CustomEntry, Entry, MessageEntry, TransientEntry
from app.conversation.ids import is_id
from app.conversation.messages import Injected, Message, Role
from app.conversation.views import reader_sees

Hook = Callable[..., object]


def read_messages(hook: Hook, result: object) -> list[Message] | None:
    """Valid copies of the messages that a hook returned. HookFailed if it returned anything else."""
    items = _items(hook, result, Message, "messages")
    return None if items is None else [_copied(hook, cast(Message, item)) for item in items]


def read_additions(
    hook: Hook, result: object, *, known: Collection[str], clock: Clock, sender_id: str
) -> list[Entry]:
    """Copies of what a hook returned, ready to be appended.

    Each message has a mark (meta, unless the hook gave it one), a time, and an id that none of `known` has.
    A record has an id of its own and a time; one without a sender is from `sender_id`. HookFailed if it
    returned anything else, or what is for models and tools to make: a call or a result.
    """
    taken: list[Entry] = []
    used = set(known)
    kinds = (Message, CustomEntry, TransientEntry)
    for item in _items(hook, result, kinds, "messages and records") or ():
        if isinstance(item, Message):
            message = _complete(_copied(hook, item), used, clock)
            _refuse_calls(hook, message)
            used.add(message.id)
            taken.append(MessageEntry(message))
        else:
            taken.append(_record(hook, cast(CustomEntry | TransientEntry, item), clock, sender_id))
    return taken


def _items(
    hook: Hook, result: object, kinds: type[Message] | tuple[type[Addition], ...], words: str
) -> Sequence[object] | None:
    if result is None:
        return None
    items = cast(Sequence[object], result) if isinstance(result, list | tuple) else None
    if items is None or not all(isinstance(item, kinds) for item in items):
        kind = type(cast(object, result)).__name__
        raise HookFailed(f"hook {name_of(hook)} returned {kind}, not a list of {words}")
    return items


def _copied(hook: Hook, message: Message) -> Message:
    """A copy that is valid and that every store and wire can carry."""
    try:
        value = cast(JsonValue, message.model_dump(mode="json", by_alias=True, warnings="error"))
        return Message.model_validate(scrub_json(value))
    except ValueError as error:
        raise HookFailed(f"hook {name_of(hook)} returned a message that is none") from error


def _complete(message: Message, used: Collection[str], clock: Clock) -> Message:
    """A hook speaks neither for a person nor for the model, so nothing of it is left unmarked."""
    changes: dict[str, object] = {}
    if message.id in used or not is_id(message.id):
        changes["id"] = new_id("msg")
    if message.created_at is None:
        changes["created_at"] = clock.now()
    if reader_sees(message):
        changes["injected"] = Injected.META
    return message.model_copy(update=changes) if changes else message


def _refuse_calls(hook: Hook, message: Message) -> None:
    """Of a call or a result that nobody made, nobody could say what became of it."""
    if message.role is Role.TOOL_RESULT or any(isinstance(block, ToolCall) for block in message.content):
        raise HookFailed(f"hook {name_of(hook)} returned a call or the result of one")


def _record(hook: Hook, given: CustomEntry | TransientEntry, clock: Clock, sender_id: str) -> Entry:
    """A hook may give one object again and again: only an id made here is nobody else's."""
    try:
        name, value = checked_record(given.name, given.value)
        if isinstance(given, TransientEntry):
            return replace(given, name=name, value=value, id=new_id("entry"))
        return CustomEntry(
            name, value, _instant(given.created_at, clock), _sender(given.sender_id, sender_id)
        )
    except ValueError as error:
        raise HookFailed(f"hook {name_of(hook)} returned a record that is none: {error}") from error


def _instant(at: object, clock: Clock) -> int:
    """Nanoseconds that a signed 64-bit column holds."""
    if at is None:
        return clock.now()
    if not isinstance(at, int) or abs(at) >= 2**63:
        raise ValueError("its time is no instant")
    return at


def _sender(given: object, sender_id: str) -> str:
    if given is None:
        return sender_id
    if not isinstance(given, str) or not is_id(given):
        raise ValueError("its sender is none")
    return given
