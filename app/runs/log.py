"""The event log of a run: one list of frames that any number of followers read, each from its own place."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from app.errors import InvalidInput
from app.frames import Frame

WRITE_LIMIT = 64 * 1024
"""The most bytes a follower is handed at once."""


@dataclass(frozen=True, slots=True)
class Position:
    """Behind which frame of which log: the `id:` of an event, `<run seq>.<epoch>.<number>`."""

    seq: int
    epoch: int
    number: int

    @classmethod
    def parse(cls, text: str) -> "Position":
        """InvalidInput for anything that is not a position."""
        parts = text.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            raise InvalidInput("A position looks like 12.1.340.", field="Last-Event-ID")
        return cls(*(int(part) for part in parts))

    def __str__(self) -> str:
        return f"{self.seq}.{self.epoch}.{self.number}"


class EventLog(Protocol):
    """Frames of one run, numbered from 1."""

    @property
    def seq(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def ended(self) -> bool: ...

    @property
    def last(self) -> int:
        """The number of the last frame; 0 before there is one."""
        ...

    @property
    def opening_state(self) -> JsonValue:
        """The shared state before the first frame."""
        ...

    def frames(self, *, legacy: bool = False) -> Iterator[bytes]:
        """All frames so far, without the framing of server-sent events."""
        ...

    def append(self, frames: Sequence[Frame]) -> None:
        """Adds frames and wakes the followers. Never waits for anyone."""
        ...

    def end(self) -> None:
        """Nothing comes any more; followers that have read everything finish."""
        ...

    def follow(self, after: int = 0, *, legacy: bool = False) -> AsyncGenerator[bytes]:
        """Server-sent events behind frame `after`, at most `WRITE_LIMIT` bytes at a time, until the end.

        An empty piece means: nothing new, the clock ticked. `legacy` picks what 0.x clients get.
        """
        ...
