"""A validator's complaint as a refusal that names the field and never repeats what it holds."""

from collections.abc import Sequence
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.agui.fields import PROTOCOL_NAMES, field_path
from app.errors import InvalidInput


def refusal(error: ValidationError, value: object, prefix: str, places: Sequence[int] = ()) -> InvalidInput:
    """The complaint that goes deepest into the client's own body: where a value may be of several types,
    the validator complains for each.

    `value` stands at `prefix`; `places` are those of its parts, as the client numbered them.
    """
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
