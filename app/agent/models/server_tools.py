"""Tools that a provider runs itself, such as a search of the web: asked for, told, and sent back.

A call and its result are one block of ours. It goes back to the provider that made it exactly as it came,
for the result holds what only that provider can read. Any other provider is sent nothing of it: what came of
the call stands in the text behind it, and a call told as text teaches a model to write such text.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import JsonValue
from pydantic_ai.messages import ModelResponsePart, NativeToolCallPart, NativeToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.native_tools import AbstractNativeTool, CodeExecutionTool, WebFetchTool, WebSearchTool
from pydantic_core import to_json, to_jsonable_python

from app.agent.models.base import ServerCall
from app.agent.pairing import is_json_object
from app.conversation.blocks import ToolCall
from app.errors import StartupRefused

_TOOLS: dict[str, type[AbstractNativeTool]] = {
    "web_search": WebSearchTool,
    "web_fetch": WebFetchTool,
    "code_execution": CodeExecutionTool,
}
_SEALED = "encrypted"
"""The beginning of the names of members that only their provider can read."""


def server_tools(model: Model, names: Sequence[str]) -> list[AbstractNativeTool]:
    """The library's own of these. StartupRefused for one that is unknown or that the model does not take."""
    taken = model.profile.get("supported_native_tools", frozenset[type[AbstractNativeTool]]())
    for name in names:
        if name not in _TOOLS:
            raise StartupRefused(f"There is no server tool {name}; there are {', '.join(_TOOLS)}.")
        if _TOOLS[name] not in taken:
            raise StartupRefused(f"The model {model.model_name} of {model.system} has no server tool {name}.")
    return [_TOOLS[name]() for name in names]


def server_call(
    call: NativeToolCallPart, given: NativeToolReturnPart, notes: dict[str, Any] | None
) -> ServerCall:
    """The call with its result; `notes` is what else the provider wants to see again of the call."""
    raw = cast(JsonValue, to_jsonable_python(given.content))
    details = {"result": to_jsonable_python(given.provider_details)} if given.provider_details else {}
    return ServerCall(
        call_id=call.tool_call_id,
        name=call.tool_name,
        arguments=arguments_text(call.args),
        server_type=call.tool_name.partition(":")[0],
        content=_readable(raw),
        raw=raw,
        is_error=given.outcome != "success" or _failed(raw),
        provider={**(notes or {}), **details} or None,
    )


def server_parts(block: ToolCall, notes: dict[str, Any]) -> Iterator[ModelResponsePart]:
    """The call and its result as the library takes them; nothing for a call without a result, which every
    provider would refuse. `notes` are those of `server_call`, read back."""
    if block.output is None or block.output.raw is None:
        return
    if block.arguments and not is_json_object(block.arguments):
        return
    result = (block.provider or {}).get("result")
    yield NativeToolCallPart(
        tool_name=block.name, args=block.arguments or None, tool_call_id=block.id, **notes
    )
    yield NativeToolReturnPart(
        tool_name=block.name,
        content=cast(Any, block.output.raw),
        tool_call_id=block.id,
        provider_name=notes["provider_name"],
        provider_details=cast("dict[str, Any] | None", result),
    )


def arguments_text(args: object) -> str:
    """The JSON text of arguments. An object that has no member yet is the place of one that is to come."""
    if isinstance(args, str):
        return args
    return to_json(args).decode() if args else ""


def _readable(value: JsonValue) -> JsonValue:
    """The same without what only the provider can read."""
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {
            name: _readable(member)
            for name, member in value.items()
            if not name.startswith(_SEALED) and member is not None
        }
    return value


def _failed(raw: JsonValue) -> bool:
    if not isinstance(raw, dict):
        return False
    return "error_code" in raw or raw.get("status") == "failed" or raw.get("return_code", 0) != 0
