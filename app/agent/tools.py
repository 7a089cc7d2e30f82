"""Tools: Python functions that a model may call."""

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast, overload

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json, to_jsonable_python

from app.agent.blocking import in_thread
from app.agent.prompt import ToolDefinition
from app.agent.scrub import scrub, scrub_json
from app.agent.signature import read_signature
from app.agent.tool_context import NeedsAnswer, ToolContext
from app.agent.tool_context import ToolError as ToolError
from app.conversation.blocks import Block, Text, ToolCall
from app.conversation.messages import Message
from app.conversation.words import Words

_log = logging.getLogger(__name__)
_BLOCK: TypeAdapter[Block] = TypeAdapter(Block)


class ArgumentsRefused(Exception):
    """The model's arguments do not fit; the message says why, to the model."""


Approval = bool | Callable[[dict[str, Any]], bool]
"""Whether a person is asked before each call, or what decides that by the arguments."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with its description for models.

    `timeout` is in seconds; None means the agent's limit, and infinity none. With `approval` a person is
    asked before it runs.
    """

    definition: ToolDefinition
    function: Callable[..., Any]
    arguments: TypeAdapter[dict[str, Any]]
    context_parameter: str | None
    timeout: float | None = None
    approval: Approval = False

    @property
    def name(self) -> str:
        return self.definition.name

    def read(self, text: str) -> dict[str, Any]:
        """Keyword arguments from the model's JSON text; an empty text is `{}`. ArgumentsRefused if they do
        not fit the signature."""
        try:
            given = cast(JsonValue, from_json(text, allow_inf_nan=False)) if text.strip() else {}
        except ValueError:
            raise ArgumentsRefused("they are not valid JSON") from None
        if not isinstance(given, dict):
            raise ArgumentsRefused("they are not a JSON object")
        try:
            return self.arguments.validate_python(scrub_json(cast(JsonValue, given)))
        except ValidationError as error:
            raise ArgumentsRefused(_complaints(error)) from None

    def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """Whether a person is to be asked about this call. What raises asks for nothing and so is asked."""
        if not callable(self.approval):
            return self.approval
        try:
            return bool(self.approval(dict(arguments)))
        except Exception:
            _log.exception("whether tool %s needs approval could not be told: it does", self.name)
            return True

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> tuple[Block, ...]:
        """Runs the function, one that is not async in a thread of its own. Raises what it raises."""
        given = {**arguments, self.context_parameter: context} if self.context_parameter else arguments
        if inspect.iscoroutinefunction(self.function):
            result: object = await self.function(**given)
        else:
            result = await in_thread(partial(_in_hand, self.function, given), "tool")
            if isinstance(result, NeedsAnswer):
                raise result
            if inspect.isawaitable(result):
                result = await result
        return as_blocks(result)


def _in_hand(function: Callable[..., Any], given: dict[str, Any]) -> object:
    """A question does not pass for something that would end the thread."""
    try:
        return function(**given)
    except NeedsAnswer as needed:
        return needed


ToolLike = Tool | Callable[..., Any]


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    approval: Approval = False,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    approval: Approval = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function: `@tool`, `@tool(timeout=5)` or `@tool(approval=True)`.

    Name, description and JSON schema come from the function's name, docstring and annotations. TypeError for
    a signature that cannot be described to a model.
    """
    if function is None:
        return partial(_make, name=name, description=description, timeout=timeout, approval=approval)
    return _make(function, name=name, description=description, timeout=timeout, approval=approval)


def _make(
    function: Callable[..., Any],
    /,
    *,
    name: str | None,
    description: str | None,
    timeout: float | None,
    approval: Approval,
) -> Tool:
    signature = read_signature(function, ToolContext)
    definition = ToolDefinition(
        name=name or function.__name__,
        description=signature.description if description is None else description,
        parameters=signature.schema,
    )
    return Tool(definition, function, signature.arguments, signature.injected, timeout, approval)


def as_tool(given: ToolLike) -> Tool:
    """The tool itself, or one made of a plain function."""
    return given if isinstance(given, Tool) else tool(given)


def as_blocks(result: object) -> tuple[Block, ...]:
    """What a function returned, as a model reads it: text as it is, blocks as they are, None as nothing,
    anything else as JSON text with null for NaN and infinities. ValueError if it has no JSON form."""
    if result is None:
        return ()
    if isinstance(result, str):
        return (Text(text=scrub(result)),) if result else ()
    several = isinstance(result, list | tuple)
    items = cast(Sequence[object], result if several else (result,))
    if items and all(_is_block(item) for item in items):
        return tuple(_clean(cast(Block, item)) for item in items)
    return (Text(text=_json_text(result)),)


def _is_block(item: object) -> bool:
    return isinstance(item, Words) and not isinstance(item, ToolCall | Message) and hasattr(item, "type")


def _clean(block: Block) -> Block:
    value = cast(JsonValue, block.model_dump(mode="json", by_alias=True))
    clean = scrub_json(value)
    return block if clean == value else _BLOCK.validate_python(clean)


def _json_text(result: object) -> str:
    value = cast(JsonValue, to_jsonable_python(result, inf_nan_mode="null"))
    return to_json(scrub_json(value), inf_nan_mode="null").decode()


def _complaints(error: ValidationError) -> str:
    """What is wrong with which argument, without the values."""
    return "; ".join(
        f"{'.'.join(str(step) for step in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    )
