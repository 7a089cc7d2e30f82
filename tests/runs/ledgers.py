"""Ledgers that wait or fail when a test wants it, and otherwise keep what they are given."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import JsonValue

from app.clock import Instant
from app.conversation.outcomes import RunEnd
from app.errors import StorageFailed
from app.store.adapter import KEEP, Claim, Keep, NewEntry, RunRecord


class Ledger:
    """Keeps entries and the end in memory. `failures` many calls are refused before one succeeds;
    `gate`, while it is there, is waited for before anything is kept."""

    def __init__(self, failures: int = 0, gate: asyncio.Event | None = None) -> None:
        self.entries: list[NewEntry] = []
        self.end: RunEnd | None = None
        self.failures = failures
        self.gate = gate
        self.asked = 0

    async def _door(self) -> None:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.failures > 0:
            self.failures -= 1
            raise StorageFailed("refused")

    async def append(
        self, namespace: str, run_id: str, entries: Sequence[NewEntry], *, state: JsonValue | Keep = KEEP
    ) -> None:
        await self._door()
        self.entries += entries

    async def finish(
        self,
        namespace: str,
        run_id: str,
        end: RunEnd,
        at: Instant,
        *,
        entries: Sequence[NewEntry] = (),
        state: Any = None,
    ) -> bool:
        await self._door()
        if self.end is not None:
            return False
        self.entries += entries
        self.end = end
        return True

    async def claim(self, claim: Claim) -> RunRecord:
        raise AssertionError("nothing is claimed here")

    async def live_runs(self) -> Sequence[tuple[str, RunRecord]]:
        return []

    def texts(self) -> list[str]:
        """The text of the messages kept."""
        read: Callable[[Any], str] = lambda new: new.entry.message.join_text()  # noqa: E731
        return [read(new) for new in self.entries]
