"""RunAgentInput, read strictly where it matters and with patience where the protocol asks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ag_ui.core import Message as WireMessage
from ag_ui.core import RunAgentInput, UserMessage
from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from app.agui.encoding import encode
from app.agui.fields import PROTOCOL_NAMES, field_path
from app.agui.options import Options, read_options
from app.agui.parts import block_of, keep_known
from app.conversation.blocks import Media, Text
from app.conversation.ids import check_id
from app.errors import InvalidInput

MOST_MESSAGES = 10_000
MOST_EXTRAS = 1_000
"""The most tools, and the most items of context."""
LARGEST_STATE = 1024 * 1024
"""Bytes of the state as JSON: every client of the thread is sent all of it."""
ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "reasoning", "activity"})

_NOTHING_ASKED = Options()
_ENVELOPE: TypeAdapter[RunAgentInput] = TypeAdapter(RunAgentInput)
_MESSAGE: TypeAdapter[WireMessage] = TypeAdapter(WireMessage)


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the client's list. Content is read of a user's alone.

    `index` is its place in the list; `places` where each block stood in a content list, empty for a string.
    """

    index: int
    id: str
    role: str
    blocks: tuple[Text | Media, ...] = ()
    places: tuple[int, ...] = ()
    as_parts: bool = False
    name: str | None = None
    metadata: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class RunInput:
    """One request to run, checked. `state` is as sent, None for absent and null; `context` holds pairs of
    description and value; `dropped_parts` counts content parts of unknown types."""

    thread_id: str
    run_id: str
    messages: tuple[Said, ...]
    parent_run_id: str | None = None
    protocol_version: str | None = None
    state: JsonValue = None
    context: tuple[tuple[str, str], ...] = ()
    tools: tuple[JsonValue, ...] = ()
    options: Options = _NOTHING_ASKED
    conversation: JsonValue = None
    dropped_parts: int = 0

    @property
    def legacy(self) -> bool:
        """Whether the client is of the 0.x generation, which sends no version."""
        return self.protocol_version is None

    def message_ids(self) -> list[str]:
        """The ids to ask the thread's head for, each once."""
        return list(dict.fromkeys(message.id for message in self.messages))


def read_run_input(body: JsonValue) -> RunInput:
    """Reads a parsed body. InvalidInput names the offending field and never repeats what it holds.

    Unknown members are ignored and null counts as absent. Content parts of unknown types are left out.
    """
    if not isinstance(body, dict):
        raise InvalidInput("The body must be a JSON object.", field="body")
    _check_sizes(body)
    envelope = _envelope(body)
    if envelope.resume:
        raise InvalidInput("This server has no interrupts to resume yet.", field="resume")
    forwarded = cast(JsonValue, envelope.forwarded_props)
    messages, dropped = _messages(body.get("messages"))
    return RunInput(
        thread_id=check_id(envelope.thread_id, "threadId"),
        run_id=check_id(envelope.run_id, "runId"),
        messages=messages,
        parent_run_id=_optional_id(envelope.parent_run_id, "parentRunId"),
        protocol_version=envelope.protocol_version,
        state=cast(JsonValue, envelope.state),
        context=tuple((item.description, item.value) for item in envelope.context or ()),
        tools=tuple(tool.model_dump(mode="json", by_alias=True) for tool in envelope.tools or ()),
        options=read_options(forwarded),
        conversation=forwarded.get("conversation") if isinstance(forwarded, dict) else None,
        dropped_parts=dropped,
    )


def _check_sizes(body: Mapping[str, JsonValue]) -> None:
    for name in ("tools", "context", "resume"):
        given = body.get(name)
        if isinstance(given, list) and len(given) > MOST_EXTRAS:
            raise InvalidInput(f"A request holds at most {MOST_EXTRAS} {name}.", field=name)
    if len(encode(body.get("state"))) > LARGEST_STATE:
        raise InvalidInput(f"The state has at most {LARGEST_STATE} bytes.", field="state")


def _envelope(body: Mapping[str, JsonValue]) -> RunAgentInput:
    """Everything but the messages, which are read one by one."""
    try:
        return _ENVELOPE.validate_python({**body, "messages": []})
    except ValidationError as error:
        raise _refusal(error, body, "") from None


def _optional_id(value: str | None, field: str) -> str | None:
    return None if value is None else check_id(value, field)


def _messages(given: JsonValue) -> tuple[tuple[Said, ...], int]:
    if not isinstance(given, list):
        raise InvalidInput("messages must be a list.", field="messages")
    if len(given) > MOST_MESSAGES:
        raise InvalidInput(f"A request holds at most {MOST_MESSAGES} messages.", field="messages")
    read = [_message(message, index) for index, message in enumerate(given)]
    return tuple(said for said, _ in read), sum(dropped for _, dropped in read)


def _message(given: JsonValue, index: int) -> tuple[Said, int]:
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
        raise _refusal(error, given, field, kept.places if kept else ()) from None
    check_id(message.id, f"{field}/id")
    if not isinstance(message, UserMessage):
        return Said(index, message.id, message.role), 0
    return _user(message, index, tuple(kept.places) if kept else ()), kept.dropped if kept else 0


def _user(message: UserMessage, index: int, places: tuple[int, ...]) -> Said:
    content = message.content
    as_parts = not isinstance(content, str)
    blocks = (Text(text=content),) if isinstance(content, str) else tuple(map(block_of, content))
    return Said(
        index=index,
        id=message.id,
        role=message.role,
        blocks=blocks,
        places=places,
        as_parts=as_parts,
        name=message.name,
        metadata=message.metadata,
    )


def _refusal(error: ValidationError, value: object, prefix: str, places: Sequence[int] = ()) -> InvalidInput:
    """The complaint that goes deepest into the client's own body: where a value may be of several types,
    the validator complains for each."""
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    paths = [_path(complaint, value, places) for complaint in complaints]
    deepest = max(range(len(paths)), key=lambda number: len(paths[number]))
    path = [*prefix.split("/"), *paths[deepest]] if prefix else paths[deepest]
    return InvalidInput(_words(complaints[deepest]["type"]), field=field_path(path))


def _path(complaint: ErrorDetails, value: object, places: Sequence[int]) -> list[str]:
    """Leaves out the tags that the validator adds, and counts parts as the client numbered them."""
    path: list[str] = []
    location = complaint["loc"]
    for segment in location:
        if isinstance(segment, int) and path == ["content"] and segment < len(places):
            segment = places[segment]
        inside = _step(value, segment)
        if inside is not None:
            path.append(str(segment))
            value = inside[0]
    if complaint["type"] == "missing" and location[-1] in PROTOCOL_NAMES:
        path.append(str(location[-1]))
    return path


def _step(value: object, segment: int | str) -> tuple[Any] | None:
    if isinstance(value, dict) and segment in value:
        return (cast(dict[object, Any], value)[segment],)
    if isinstance(value, list) and isinstance(segment, int) and segment < len(cast(list[Any], value)):
        return (cast(list[Any], value)[segment],)
    return None


def _words(kind: str) -> str:
    if kind == "missing":
        return "A required member is missing."
    if kind.endswith("_type"):
        return "A member is of the wrong type."
    return "A member has a value that the protocol does not allow."
