"""RunAgentInput, read strictly where it matters and with patience where the protocol asks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ag_ui.core import RunAgentInput, Tool
from pydantic import JsonValue, TypeAdapter, ValidationError

from app.agent.prompt import ToolDefinition
from app.agui.encoding import encode
from app.agui.options import Options, read_options
from app.agui.refusals import refusal
from app.agui.resume import Reply, read_replies
from app.agui.said import Said, read_messages
from app.conversation.entries import CustomEntry
from app.conversation.ids import check_id
from app.errors import InvalidInput

MOST_EXTRAS = 1_000
"""The most tools, items of context and answers to interrupts."""
LARGEST_STATE = 1024 * 1024
"""Bytes of the state as JSON: every client of the thread is sent all of it."""

_NOTHING_ASKED = Options()
_ENVELOPE: TypeAdapter[RunAgentInput] = TypeAdapter(RunAgentInput)


@dataclass(frozen=True, slots=True)
class RunInput:
    """One request to run, checked. `state` is as sent, None for absent and null; `context` holds pairs of
    description and value; `tools` are as sent, and `client_tools` what a model is told of them; `records` are
    the application's, to be stored with the turn."""

    thread_id: str
    run_id: str
    messages: tuple[Said, ...]
    parent_run_id: str | None = None
    protocol_version: str | None = None
    state: JsonValue = None
    context: tuple[tuple[str, str], ...] = ()
    tools: tuple[JsonValue, ...] = ()
    client_tools: tuple[ToolDefinition, ...] = ()
    replies: tuple[Reply, ...] = ()
    records: tuple[CustomEntry, ...] = ()
    options: Options = _NOTHING_ASKED
    conversation: JsonValue = None

    @property
    def legacy(self) -> bool:
        """Whether the client is of the 0.x generation, which sends no version."""
        return self.protocol_version is None

    def entry_ids(self) -> list[str]:
        """The ids to ask the thread for, each once."""
        return list(dict.fromkeys(one.id for one in (*self.messages, *self.records)))


def read_run_input(body: JsonValue) -> RunInput:
    """Reads a parsed body. InvalidInput names the offending field and never repeats what it holds.

    Unknown members are ignored and null counts as absent. Content parts of unknown types are left out.
    """
    if not isinstance(body, dict):
        raise InvalidInput("The body must be a JSON object.", field="body")
    _check_sizes(body)
    envelope = _envelope(body)
    forwarded = cast(JsonValue, envelope.forwarded_props)
    return RunInput(
        thread_id=check_id(envelope.thread_id, "threadId"),
        run_id=check_id(envelope.run_id, "runId"),
        messages=read_messages(body.get("messages")),
        parent_run_id=_optional_id(envelope.parent_run_id, "parentRunId"),
        protocol_version=envelope.protocol_version,
        state=cast(JsonValue, envelope.state),
        context=tuple((item.description, item.value) for item in envelope.context or ()),
        tools=tuple(tool.model_dump(mode="json", by_alias=True) for tool in envelope.tools or ()),
        client_tools=_definitions(envelope.tools or ()),
        replies=read_replies(envelope.resume or (), forwarded),
        options=read_options(forwarded),
        conversation=forwarded.get("conversation") if isinstance(forwarded, dict) else None,
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
        raise refusal(error, body, "") from None


def _optional_id(value: str | None, field: str) -> str | None:
    return None if value is None else check_id(value, field)


def _definitions(tools: Sequence[Tool]) -> tuple[ToolDefinition, ...]:
    """The client's tools as a model is told of them. Of several with one name the first counts."""
    read: dict[str, ToolDefinition] = {}
    for index, tool in enumerate(tools):
        parameters = cast(JsonValue, tool.parameters)
        if parameters is not None and not isinstance(parameters, dict):
            raise InvalidInput("parameters must be a JSON schema.", field=f"tools/{index}/parameters")
        if not tool.name.strip():
            raise InvalidInput("A tool needs a name.", field=f"tools/{index}/name")
        schema: dict[str, JsonValue] = {"type": "object", "properties": {}, **(parameters or {})}
        read.setdefault(tool.name, ToolDefinition(tool.name, tool.description, schema))
    return tuple(read.values())
