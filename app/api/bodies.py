"""Strict JSON: what cannot be stored and given back unchanged is refused, naming where it stands."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, cast

import orjson

from app.errors import AppError, InvalidInput

MAX_DEPTH = 200
"""How deep objects and arrays may be nested."""

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
    if _depth(body) > MAX_DEPTH:
        raise InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels.", field="body")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        _explain(body, error)
    if _SUSPICIOUS.search(body):
        _refuse_oddities(_lenient(body))
    return document


def _depth(body: bytes) -> int:
    """The deepest nesting, counting brackets outside strings; cheap where there are few brackets at all."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return 0
    deepest = depth = 0
    for token in re.finditer(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', body, re.DOTALL):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in (b"]", b"}"):
            depth -= 1
    return deepest


def _lenient(body: bytes) -> Any:
    return json.loads(body.decode("utf-8", "surrogatepass"))


def _explain(body: bytes, error: orjson.JSONDecodeError) -> NoReturn:
    """Tells why strict parsing failed: names the field if a lenient parser gets through."""
    try:
        document = _lenient(body)
    except (ValueError, RecursionError):
        document = None
    if document is not None:
        _refuse_oddities(document)
    raise NotJson(f"The body is not valid JSON (character {error.pos}).", field="body") from None


def _refuse_oddities(document: Any) -> None:
    for path, value in _leaves(document, ()):
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
