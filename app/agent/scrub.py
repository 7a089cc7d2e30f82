"""The door for text from models and tools: what no store and no wire can carry becomes U+FFFD."""

import re
from typing import cast

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
