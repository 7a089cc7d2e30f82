"""The door for text from models and tools: what no store and no wire can carry becomes U+FFFD."""

import re
from collections.abc import Sequence
from typing import cast

import orjson
from pydantic import JsonValue

_BAD = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def scrub(text: str) -> str:
    """The text with surrogate halves joined where two make a character; lone ones and NUL become U+FFFD."""
    if _BAD.search(text) is None:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", _REPLACEMENT)


def scrub_json(value: JsonValue) -> JsonValue:
    """The same for every text inside a JSON value, member names included."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [scrub_json(item) for item in value]
    if isinstance(value, dict):
        members = cast(dict[str, JsonValue], value)
        return {scrub(name): scrub_json(item) for name, item in members.items()}
    return value


def plain_json(value: object) -> JsonValue:
    """A copy that every store and wire can carry: scrubbed, NaN and infinities as null. ValueError if it has
    no JSON form, for which integers end at 64 bits."""
    try:
        loose = cast(JsonValue, orjson.loads(orjson.dumps(_scrubbed(value))))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("the value has no JSON form") from error
    return loose


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in cast(Sequence[object], value)]
    if isinstance(value, dict):
        members = cast(dict[object, object], value)
        return {_scrubbed(name): _scrubbed(item) for name, item in members.items()}
    return value


class DeltaScrubber:
    """Scrubs one text that arrives in pieces: a first surrogate half waits for the piece that follows."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def take(self, piece: str) -> str:
        """What of the text so far is ready and was not given before."""
        if not self._held and _BAD.search(piece) is None:
            return piece
        text = self._held + piece
        self._held = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return scrub(text[:-1] if self._held else text)

    def rest(self) -> str:
        """What is left at the end of the text."""
        held, self._held = self._held, ""
        return _REPLACEMENT if held else ""
