"""The in-process event log, and the shelf on which logs stand while they may still be read."""

import asyncio
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

from pydantic import JsonValue

from app.frames import Frame, Variants
from app.runs.log import WRITE_LIMIT, EventLog


class MemoryLog:
    """All frames in one growing buffer, with the end of each: a follower is a number and copies slices.

    Where a 0.x client gets something else than a 1.0 client, the difference is kept aside by frame number.
    """

    def __init__(self, seq: int, epoch: int, opening_state: JsonValue = None) -> None:
        self.seq = seq
        self.epoch = epoch
        self.opening_state = opening_state
        self.ended = False
        self._prefix = f"id: {seq}.{epoch}.".encode()
        self._bytes = bytearray()
        self._ends = array("Q", [0])
        self._legacy: dict[int, bytes] = {}
        self._legacy_numbers: list[int] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def last(self) -> int:
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Bytes held."""
        return len(self._bytes) + 8 * len(self._ends)

    def append(self, frames: Sequence[Frame]) -> None:
        buffer, ends = self._bytes, self._ends
        for frame in frames:
            number = len(ends)
            if isinstance(frame, Variants):
                self._set_legacy(number, frame.legacy)
                frame = frame.current
            buffer += b"%b%d\ndata: %b\n\n" % (self._prefix, number, frame)
            ends.append(len(buffer))
        self.wake()

    def _set_legacy(self, number: int, frame: bytes | None) -> None:
        event = b"" if frame is None else b"%b%d\ndata: %b\n\n" % (self._prefix, number, frame)
        self._legacy[number] = event
        self._legacy_numbers.append(number)

    def end(self) -> None:
        self.ended = True
        self.wake()

    def wake(self) -> None:
        """Lets every waiting follower look again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def frames(self, *, legacy: bool = False) -> Iterator[bytes]:
        differing = self._legacy if legacy else {}
        for number in range(1, len(self._ends)):
            event = differing.get(number)
            if event is None:
                event = self._bytes[self._ends[number - 1] : self._ends[number]]
            if event:
                yield bytes(event[event.index(b"\ndata: ") + len(b"\ndata: ") : -2])

    async def follow(self, after: int = 0, *, legacy: bool = False) -> AsyncGenerator[bytes]:
        at = after
        while True:
            if at < len(self._ends) - 1:
                event, at = self._next(at, legacy)
                for start in range(0, len(event), WRITE_LIMIT):
                    yield event[start : start + WRITE_LIMIT]
            elif self.ended:
                return
            else:
                await self._changed()
                if at >= len(self._ends) - 1 and not self.ended:
                    yield b""

    def _next(self, at: int, legacy: bool) -> tuple[bytes, int]:
        """What is written next behind frame `at`, and the frame it reaches: as many whole frames as fit
        one write, or a single larger one."""
        ends = self._ends
        last = len(ends) - 1
        if legacy and self._legacy_numbers:
            different = bisect_right(self._legacy_numbers, at)
            if different < len(self._legacy_numbers):
                number = self._legacy_numbers[different]
                if number == at + 1:
                    return self._legacy[number], number
                last = number - 1
        start = ends[at]
        fitting = min(bisect_right(ends, start + WRITE_LIMIT, at) - 1, last)
        reached = max(fitting, at + 1)
        return bytes(memoryview(self._bytes)[start : ends[reached]]), reached

    async def _changed(self) -> None:
        self._loop = self._loop or asyncio.get_running_loop()
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter


class LogShelf:
    """Logs by (namespace, run id): live ones, and ended ones for a while.

    An ended log goes `retention` seconds after its end, the longest ended first where ended logs hold more
    than `max_bytes` together.
    """

    def __init__(self, retention: float, max_bytes: int, now: Callable[[], float]) -> None:
        self._retention = retention
        self._max_bytes = max_bytes
        self._now = now
        self._live: dict[tuple[str, str], MemoryLog] = {}
        self._ended: OrderedDict[tuple[str, str], tuple[float, MemoryLog]] = OrderedDict()
        self._held = 0
        """Bytes of the ended logs."""

    def open(
        self, namespace: str, run_id: str, seq: int, epoch: int, opening_state: JsonValue = None
    ) -> MemoryLog:
        """A new log for a run that begins, in the place of one under the same id whose run was deleted."""
        self._drop((namespace, run_id))
        log = self._live[namespace, run_id] = MemoryLog(seq, epoch, opening_state)
        return log

    def retire(self, namespace: str, run_id: str) -> None:
        """Ends the log; from now on it is kept on terms."""
        log = self._live.pop((namespace, run_id), None)
        if log is not None:
            log.end()
            self._ended[namespace, run_id] = (self._now(), log)
            self._held += log.size
            self._sweep()

    def get(self, namespace: str, run_id: str) -> EventLog | None:
        key = (namespace, run_id)
        if key in self._live:
            return self._live[key]
        return self._ended[key][1] if key in self._ended else None

    def tick(self) -> None:
        """Called every few seconds: lets silent followers send their keep-alive and drops old logs."""
        for log in self._live.values():
            log.wake()
        self._sweep()

    def _sweep(self) -> None:
        """Entries stand in the order of their end: what goes is in front, and the rest is not looked at."""
        deadline = self._now() - self._retention
        while self._ended:
            key, (ended_at, _) = next(iter(self._ended.items()))
            if ended_at > deadline and self._held <= self._max_bytes:
                return
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        if key in self._ended:
            _, log = self._ended.pop(key)
            self._held -= log.size
