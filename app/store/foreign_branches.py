"""Branches as somebody's own storage tells them, and who works on the runs at their ends."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from app.conversation.outcomes import RunStatus
from app.errors import AppError, NotFound, StorageFailed
from app.store.adapter import ConversationStore, RunRecord, ThreadAttributes, TranscriptReader, TurnRow
from app.store.run_meta import read_attributes, read_runs, standing, status_of_turn

_MOST_PLACES = 50_000
Settle = Callable[[Any, str, RunRecord], Awaitable[None]]
"""Ends a run that an earlier process left running: (store, namespace, run)."""


@dataclass(slots=True)
class Live:
    """A run that holds its thread. `meta` is what is stored of it, `held` the ids of its entries.

    `in_doubt` tells that a save broke off, so that its entries may be stored.
    """

    record: RunRecord
    thread: ThreadAttributes
    meta: dict[str, Any]
    held: set[str] = field(default_factory=set[str])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    in_doubt: bool = False


@contextmanager
def storage_errors() -> Generator[None]:
    """Whatever a storage raises beside our own errors becomes StorageFailed; the cause stays for the log."""
    try:
        yield
    except AppError:
        raise
    except Exception as error:
        raise StorageFailed("The storage could not do this.") from error


class ForeignBranches:
    """What was said, without a run that nobody is working on."""

    def __init__(self, adapter: ConversationStore, settle: Settle) -> None:
        self._adapter = adapter
        self._settle_run = settle
        self._live: dict[tuple[str, str], Live] = {}
        self._places: dict[tuple[str, str], str] = {}
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._last_seq = 0

    async def _branch(self, namespace: str, thread_id: str, run_id: str | None = None) -> Sequence[TurnRow]:
        """A branch as it is stored, without a run that nobody is working on."""
        turns = await self._turns(namespace, thread_id, run_id)
        if self._is_cut(namespace, turns):
            async with self._lock(namespace, thread_id):
                await self._settled(namespace, thread_id, run_id)
            turns = await self._turns(namespace, thread_id, run_id)
        return turns

    async def _settled(self, namespace: str, thread_id: str, run_id: str | None = None) -> Sequence[TurnRow]:
        """The branch, after its last run was ended if its process is gone. The thread's lock is held."""
        turns = await self._turns(namespace, thread_id, run_id)
        if not self._is_cut(namespace, turns):
            return turns
        last, record = turns[-1], read_runs(thread_id, turns)[-1]
        held = {entry.id for entry in last.entries}
        thread = read_attributes(thread_id, turns[0])
        self._live[namespace, record.id] = Live(record, thread, dict(last.meta or {}), held)
        self._remember(namespace, record.id, thread_id)
        try:
            await self._settle_run(self, namespace, record)
        finally:
            self._live.pop((namespace, record.id), None)
        return await self._turns(namespace, thread_id, run_id)

    def _is_cut(self, namespace: str, turns: Sequence[TurnRow]) -> bool:
        """Whether the last run was left running by a process that is gone."""
        if not turns or status_of_turn(turns[-1]) is not RunStatus.RUNNING:
            return False
        return (namespace, turns[-1].run_id) not in self._live

    async def _turns(self, namespace: str, thread_id: str, run_id: str | None = None) -> Sequence[TurnRow]:
        """What stands on a branch."""
        return standing(await self._stored(namespace, thread_id, run_id))

    async def _stored(self, namespace: str, thread_id: str, run_id: str | None = None) -> Sequence[TurnRow]:
        """A branch as the storage has it, what later runs cut away included, by its own transcript if it has
        one, else by what a model is given."""
        adapter = self._adapter
        with storage_errors():
            if isinstance(adapter, TranscriptReader):
                return await adapter.transcript(namespace, thread_id, run_id)
            return await adapter.load(namespace, thread_id, run_id)

    async def _turn(self, namespace: str, thread_id: str, run_id: str) -> TurnRow | None:
        """One run of the thread, on whichever branch."""
        try:
            turns = await self._turns(namespace, thread_id, run_id)
        except NotFound:
            return None
        return turns[-1] if turns else None

    def _live_of(self, namespace: str, thread_id: str) -> Live | None:
        for (owner, _), live in self._live.items():
            if owner == namespace and live.record.thread_id == thread_id:
                return live
        return None

    def _lock(self, namespace: str, thread_id: str) -> asyncio.Lock:
        return self._locks.setdefault((namespace, thread_id), asyncio.Lock())

    def _remember(self, namespace: str, run_id: str, thread_id: str) -> None:
        """Notes whose a run is, for entries are asked for by run; the oldest notes go."""
        self._places.pop((namespace, run_id), None)
        self._places[namespace, run_id] = thread_id
        if len(self._places) > _MOST_PLACES:
            del self._places[next(iter(self._places))]
