"""The ledger over somebody's own storage: this process alone knows which runs are live."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from pydantic import JsonValue

from app.clock import Instant
from app.conversation import views
from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunEnd, RunStatus
from app.errors import AppError, Conflict, HeadMoved, NotFound, RunExists, StorageFailed, ThreadBusy
from app.store.adapter import (
    KEEP,
    Claim,
    ConversationStore,
    Keep,
    NewEntry,
    RunRecord,
    RunSave,
    ThreadAttributes,
    TranscriptReader,
    TurnRow,
)
from app.store.run_meta import (
    number_at,
    opened,
    read_attributes,
    read_runs,
    status_of_turn,
    with_end,
    write_run,
)
from app.store.runs import end_values

_MOST_PLACES = 50_000
Settle = Callable[[Any, str, RunRecord], Awaitable[None]]
"""Ends a run that an earlier process left running: (store, namespace, run)."""


@dataclass(slots=True)
class _Live:
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


class ForeignLedger:
    """Claims, entries and ends of runs, one live run a thread: saved first, then started."""

    def __init__(self, adapter: ConversationStore, settle: Settle) -> None:
        self._adapter = adapter
        self._settle_run = settle
        self._live: dict[tuple[str, str], _Live] = {}
        self._places: dict[tuple[str, str], str] = {}
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._last_seq = 0

    async def claim(self, claim: Claim) -> RunRecord:
        key = claim.namespace, claim.run_id
        async with self._lock(claim.namespace, claim.thread_id):
            turns = await self._settled(claim.namespace, claim.thread_id)
            await self._check(claim, turns)
            live = self._open(claim, turns)
            # No wait between the check and this: whoever claims the id meanwhile finds it taken.
            self._live[key] = live
            try:
                await self._add(claim.namespace, live, claim.entries, live.meta, claim.created_at)
            except BaseException as error:
                # If it is stored all the same, the next reader of the thread finds it cut and ends it.
                del self._live[key]
                if isinstance(error, Conflict) and not _is_doubled(claim.entries):
                    raise RunExists(claim.run_id) from None
                raise
        self._remember(*key, claim.thread_id)
        return live.record

    async def append(self, namespace: str, run_id: str, entries: Sequence[NewEntry]) -> None:
        live = self._live.get((namespace, run_id))
        if live is not None:
            async with live.lock:
                if self._live.get((namespace, run_id)) is live:
                    return await self._add(namespace, live, entries, None, live.record.created_at)
        if live is None and (namespace, run_id) not in self._places:
            raise NotFound(f"There is no run {run_id}.")
        raise Conflict(f"Run {run_id} is over; nothing can be added to it.")

    async def finish(
        self,
        namespace: str,
        run_id: str,
        end: RunEnd,
        at: Instant,
        *,
        entries: Sequence[NewEntry] = (),
        state: JsonValue | Keep = KEEP,
    ) -> bool:
        live = self._live.get((namespace, run_id))
        if live is None:
            return False
        async with live.lock:
            if self._live.get((namespace, run_id)) is not live:
                return False
            values = end_values(end, at)
            if not isinstance(state, Keep):
                values["state"] = state
            await self._add(namespace, live, entries, with_end(live.meta, values), at)
            # Freed only when the end is stored: nobody can read the run as one that was cut.
            del self._live[namespace, run_id]
        return True

    async def live_runs(self) -> Sequence[tuple[str, RunRecord]]:
        """Those of this process. What an earlier one left is found when its thread is read."""
        return [(namespace, live.record) for (namespace, _), live in self._live.items()]

    async def _check(self, claim: Claim, turns: Sequence[TurnRow]) -> None:
        """RunExists, ThreadBusy or HeadMoved. The looks at memory come last, without a wait."""
        stored = bool(turns) and await self._turn(claim.namespace, claim.thread_id, claim.run_id) is not None
        if stored or (claim.namespace, claim.run_id) in self._live:
            raise RunExists(claim.run_id)
        busy = self._live_of(claim.namespace, claim.thread_id)
        if busy is not None:
            raise ThreadBusy(claim.thread_id, busy.record.id)
        head = turns[-1].run_id if turns else None
        if not isinstance(claim.expected_head, Keep) and claim.expected_head != head:
            raise HeadMoved(claim.thread_id)

    def _open(self, claim: Claim, turns: Sequence[TurnRow]) -> _Live:
        runs = read_runs(claim.thread_id, turns)
        self._last_seq = max(self._last_seq + 1, number_at(claim.created_at))
        record = opened(claim, self._last_seq, runs[-1] if runs else None)
        thread = read_attributes(claim.thread_id, turns[0]) if turns else claim.thread
        return _Live(record, thread, write_run(record, None if turns else claim.thread))

    async def _add(
        self,
        namespace: str,
        live: _Live,
        new: Sequence[NewEntry],
        meta: dict[str, Any] | None,
        at: Instant,
    ) -> None:
        """Saves what is kept of these entries. After a save that broke off, only what it did not store."""
        record = live.record
        entries = views.stored_view(entry.entry for entry in new)
        if live.in_doubt:
            turn = await self._turn(namespace, record.thread_id, record.id)
            stored = {entry.id for entry in turn.entries} if turn is not None else set[str]()
            entries = [entry for entry in entries if entry.id in live.held or entry.id not in stored]
        if any(entry.id in live.held for entry in entries) or _is_doubled(new):
            raise Conflict(f"Run {record.id} holds an entry of the same id already.")
        if entries or meta is not None:
            await self._save(namespace, live, entries, meta, at)
        live.held.update(entry.id for entry in entries)

    async def _save(
        self,
        namespace: str,
        live: _Live,
        entries: Sequence[StoredEntry],
        meta: dict[str, Any] | None,
        at: Instant,
    ) -> None:
        record, thread = live.record, live.thread
        save = RunSave(
            namespace=namespace,
            thread_id=record.thread_id,
            run_id=record.id,
            created_at=at,
            conversation_id=thread.conversation_id,
            entries=entries,
            previous_run_id=record.previous_run_id,
            meta=meta,
            agent=thread.agent,
            group_id=thread.group_id,
            parent_thread_id=thread.parent_thread_id,
            hidden=thread.hidden,
        )
        live.in_doubt = True
        with storage_errors():
            await self._adapter.save(save)
        live.in_doubt = False

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
        self._live[namespace, record.id] = _Live(record, thread, dict(last.meta or {}), held)
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
        """What was said, by the storage's own transcript if it has one, else by what a model is given."""
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

    def _live_of(self, namespace: str, thread_id: str) -> _Live | None:
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


def _is_doubled(new: Sequence[NewEntry]) -> bool:
    ids = [entry.id for entry in views.stored_view(entry.entry for entry in new)]
    return len(ids) > len(set(ids))
