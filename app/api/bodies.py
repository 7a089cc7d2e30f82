"""Strict JSON: what cannot be stored and given back unchanged is refused, naming where it stands."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, cast

import orjson

from app.errors import AppError, InvalidInput

MAX_DEPTH = 254
"""How deep objects and arrays may be nested: as deep as orjson writes."""
MOST_LOOKED_AT = 20_000
"""How many values are looked through for the one at fault before the whole body is blamed."""

_SUSPICIOUS = re.compile(rb"\\u0000|(?:\A|[\[:,\s])-?\d{19}")
"""An escaped NUL, or a number that may not fit 64 bits."""
_INT_LIMIT = 2**63


class NotJson(AppError):
    """The body is not a JSON document."""

    code = "not_json"
    status = 400


def parse_json(body: bytes) -> Any:
    """The document, or NotJson, or InvalidInput with the path of the value that cannot be taken:
    a lone surrogate, NUL, NaN or infinity, an integer beyond 64 bits, nesting beyond `MAX_DEPTH`."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        _explain(body, error)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _refuse_depth(document)
    if _SUSPICIOUS.search(body):
        _refuse_oddities(_lenient(body))
    return document


def _refuse_depth(document: Any) -> None:
    """The encoder goes no deeper than `MAX_DEPTH`, so asking it is the quickest way to know."""
    try:
        orjson.dumps(document)
    except TypeError:
        raise _too_deep() from None


def _too_deep() -> InvalidInput:
    return InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels.", field="body")


def _lenient(body: bytes) -> Any:
    return json.loads(body.decode("utf-8", "surrogatepass"))


def _explain(body: bytes, error: orjson.JSONDecodeError) -> NoReturn:
    """Tells why strict parsing failed: names the field if a lenient parser gets through."""
    if "depth limit" in str(error):
        raise _too_deep() from None
    try:
        document = _lenient(body)
    except (ValueError, RecursionError):
        document = None
    if document is not None:
        _refuse_oddities(document)
    raise NotJson(f"The body is not valid JSON (character {error.pos}).", field="body") from None


def _refuse_oddities(document: Any) -> None:
    for number, (path, value) in enumerate(_leaves(document, ())):
        if number == MOST_LOOKED_AT:
            raise InvalidInput("The body holds text or a number that cannot be stored.", field="body")
        complaint = _complaint(value)
        if complaint is not None:
            raise InvalidInput(complaint, field="/".join(str(part) for part in path) or "body")


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        for key, member in cast(dict[str, Any], value).items():
            yield (*path, _printable(key)), key
            yield from _leaves(member, (*path, _printable(key)))
    elif isinstance(value, list):
        for index, member in enumerate(cast(list[Any], value)):
            yield from _leaves(member, (*path, index))
    else:
        yield path, value


def _printable(key: str) -> str:
    return key.encode("utf-8", "replace").decode().replace("\0", "?")[:80]


def _complaint(value: Any) -> str | None:
    if isinstance(value, str):
        if "\0" in value:
            return "Text may not hold the character NUL."
        if any("\ud800" <= char <= "\udfff" for char in value):
            return "Text may not hold half a surrogate pair."
    elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "A number must be finite."
    elif isinstance(value, int) and not -_INT_LIMIT <= value < _INT_LIMIT:
        return "An integer must fit 64 bits."
    return None
