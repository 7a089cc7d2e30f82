"""Reads server-sent events from bytes, as the HTML standard says and no more strictly than it must.

Lines end at CR, LF or CRLF and nowhere else, so a U+2028 inside of JSON cuts nothing; bytes become text a
whole line at a time, so a character may be split over any number of reads.
"""

import re
from dataclasses import dataclass, field

CUT = "stream_cut"
"""The kind of the error that we put at the end of a stream that just stopped."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(slots=True)
class SseReader:
    """Give it bytes as they come; it gives back the events that are complete, as (event name, data).

    Events without data, comments and fields of no interest are left out.
    """

    _rest: bytes = b""
    _name: str = ""
    _data: list[str] = field(default_factory=list[str])

    def feed(self, piece: bytes) -> list[tuple[str, str]]:
        buffer = self._rest + piece
        # A CR at the very end may be half of a CRLF: it waits for what follows.
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(buffer[: len(buffer) - len(held)])
        self._rest = rest + held
        return [event for line in lines if (event := self._line(line)) is not None]

    def finish(self) -> list[tuple[str, str]]:
        """The bytes are at their end: a last event that only lacks its blank line counts."""
        lines = [*_LINE_END.split(self._rest), b""]
        self._rest = b""
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> tuple[str, str] | None:
        if line:
            name, _, value = line.partition(b":")
            text = value.removeprefix(b" ").decode("utf-8", "replace")
            if name == b"data":
                self._data.append(text)
            elif name == b"event":
                self._name = text
            return None
        event = (self._name, "\n".join(self._data))
        self._name, self._data = "", []
        return event if event[1].strip() else None


def written(name: str, data: str) -> bytes:
    """The event in its plainest form."""
    head = f"event: {name}\n" if name else ""
    body = "".join(f"data: {line}\n" for line in data.split("\n"))
    return f"{head}{body}\n".encode()
