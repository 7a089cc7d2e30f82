"""The messages of a client's list, read one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ag_ui.core import AssistantMessage, ContentPart, ToolMessage, UserMessage
from ag_ui.core import Message as WireMessage
from pydantic import JsonValue, TypeAdapter, ValidationError

from app.agui.parts import KeptParts, block_of, keep_known
from app.agui.refusals import refusal
from app.conversation.blocks import Media, Text
from app.conversation.ids import check_id
from app.errors import InvalidInput

MOST_MESSAGES = 10_000
ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "reasoning", "activity"})

_MESSAGE: TypeAdapter[WireMessage] = TypeAdapter(WireMessage)


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the client's list. Content is read of a user's and a tool's alone.

    `index` is its place in the list; `places` where each block stood in a content list, empty for a string;
    `dropped` counts parts of unknown types. `calls` are the ids of the calls that an assistant message makes,
    or of the one that a tool message answers; `error` is what a tool message says went wrong.
    """

    index: int
    id: str
    role: str
    blocks: tuple[Text | Media, ...] = ()
    places: tuple[int, ...] = ()
    as_parts: bool = False
    name: str | None = None
    metadata: Mapping[str, JsonValue] | None = None
    dropped: int = 0
    calls: tuple[str, ...] = ()
    error: str | None = None

    @property
    def field(self) -> str:
        """Where it stands in the request."""
        return f"messages/{self.index}"


def read_messages(given: JsonValue) -> tuple[Said, ...]:
    """The list, checked. Unknown members are ignored, parts of unknown types left out and counted;
    InvalidInput names the member that cannot be taken."""
    if not isinstance(given, list):
        raise InvalidInput("messages must be a list.", field="messages")
    if len(given) > MOST_MESSAGES:
        raise InvalidInput(f"A request holds at most {MOST_MESSAGES} messages.", field="messages")
    return tuple(_read(message, index) for index, message in enumerate(given))


def _read(given: JsonValue, index: int) -> Said:
    field = f"messages/{index}"
    if not isinstance(given, dict):
        raise InvalidInput("A message must be an object.", field=field)
    role = given.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidInput("The role is missing or not one of the protocol's.", field=f"{field}/role")
    content = given.get("content")
    kept = keep_known(cast(list[object], content), f"{field}/content") if isinstance(content, list) else None
    try:
        message = _MESSAGE.validate_python(given if kept is None else {**given, "content": kept.parts})
    except ValidationError as error:
        raise refusal(error, given, field, kept.places if kept else ()) from None
    check_id(message.id, f"{field}/id")
    return _said(message, index, kept or KeptParts())


def _said(message: WireMessage, index: int, kept: KeptParts) -> Said:
    if isinstance(message, UserMessage):
        return Said(
            index=index,
            id=message.id,
            role="user",
            blocks=_blocks(message.content),
            places=tuple(kept.places),
            as_parts=not isinstance(message.content, str),
            name=message.name,
            metadata=message.metadata,
            dropped=kept.dropped,
        )
    if isinstance(message, ToolMessage):
        return Said(
            index=index,
            id=message.id,
            role="tool",
            blocks=_blocks(message.content),
            places=tuple(kept.places),
            dropped=kept.dropped,
            calls=(message.tool_call_id,),
            error=message.error or None,
        )
    calls = message.tool_calls if isinstance(message, AssistantMessage) else None
    return Said(index, message.id, message.role, calls=tuple(call.id for call in calls or ()))


def _blocks(content: str | Sequence[ContentPart]) -> tuple[Text | Media, ...]:
    return (Text(text=content),) if isinstance(content, str) else tuple(map(block_of, content))
