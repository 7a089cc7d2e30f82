"""From a Python function to what a model must know of it: argument types, JSON schema, descriptions."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, cast, get_type_hints

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

_SECTION = re.compile(r"(Args|Arguments|Parameters)\s*:\s*")
_GOOGLE = re.compile(r"(\s*)\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_SPHINX = re.compile(r"\s*:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_NOT_TAKEN = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes. `arguments` reads a JSON object into keyword arguments, coerced to their types.

    `injected` is the parameter that gets the context instead of an argument of the model's, if there is one.
    """

    description: str
    schema: dict[str, JsonValue]
    arguments: TypeAdapter[dict[str, Any]]
    injected: str | None


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """TypeError for a function with *args, **kwargs or positional-only parameters, or with a type that
    cannot be described to a model."""
    hints = get_type_hints(function, include_extras=True)
    summary, notes = _read_docstring(inspect.getdoc(function) or "")
    injected: str | None = None
    members: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _NOT_TAKEN:
            raise TypeError(f"a tool names its parameters one by one: {function!r} takes {parameter}")
        hint = hints.get(parameter.name, Any)
        if hint is context_type:
            injected = parameter.name
        else:
            members[parameter.name] = _member(parameter, hint, notes.get(parameter.name))
    arguments = _adapter(members)
    return Signature(summary, _schema(arguments), arguments, injected)


def _member(parameter: inspect.Parameter, hint: Any, note: str | None) -> Any:
    optional = parameter.default is not inspect.Parameter.empty
    extra = _shown_default(parameter.default) if optional else None
    described: Any = Annotated[hint, Field(description=note, json_schema_extra=extra)]
    return NotRequired[described] if optional else described


def _shown_default(default: object) -> dict[str, JsonValue] | None:
    if default is None:
        return None
    try:
        return {"default": to_jsonable_python(default, inf_nan_mode="null")}
    except PydanticSerializationError:
        return None


def _adapter(members: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    shape: Any = TypedDict("Arguments", members)  # pyright: ignore
    shape.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        return TypeAdapter(shape)
    except Exception as error:
        raise TypeError(f"a parameter's type cannot be read from JSON: {error}") from error


def _schema(arguments: TypeAdapter[dict[str, Any]]) -> dict[str, JsonValue]:
    """The schema without the titles that Pydantic makes of the names, which tell a model nothing."""
    schema = cast(dict[str, JsonValue], arguments.json_schema())
    schema.pop("title", None)
    members = cast(dict[str, dict[str, JsonValue]], schema.get("properties", {}))
    for member in members.values():
        member.pop("title", None)
    return schema


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter, in the Google or the Sphinx style."""
    summary: list[str] = []
    notes: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if match := _SPHINX.fullmatch(line):
            notes[match[1]] = match[2].strip()
        elif _SECTION.fullmatch(line):
            summary.extend(_read_section(lines, notes))
        elif not line.startswith(":"):
            summary.append(line)
    return "\n".join(summary).strip(), notes


def _read_section(lines: Any, notes: dict[str, str]) -> list[str]:
    """Reads the indented lines of an Args section; gives back the line that ended it."""
    depth: int | None = None
    name = ""
    for line in lines:
        if line and not line[0].isspace():
            return [line]
        match = _GOOGLE.fullmatch(line)
        if match and depth in (None, len(match[1])):
            depth, name = len(match[1]), match[2]
            notes[name] = match[3].strip()
        elif name and line.strip():
            notes[name] = f"{notes[name]} {line.strip()}".strip()
    return []
