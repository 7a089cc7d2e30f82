"""The ledger over somebody's own storage: this process alone knows which runs are live."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import JsonValue

from app.clock import Instant
from app.conversation import views
from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunEnd, RunStatus
from app.errors import (
    AlreadyResumed,
    AppError,
    Conflict,
    HeadMoved,
    NotFound,
    RunExists,
    ThreadBusy,
)
from app.store.adapter import (
    KEEP,
    Claim,
    Keep,
    NewEntry,
    RunRecord,
    RunSave,
    TurnRow,
)
from app.store.foreign_branches import ForeignBranches, Live, storage_errors
from app.store.run_meta import (
    kept_of,
    number_at,
    opened,
    read_attributes,
    read_runs,
    status_of_turn,
    with_values,
    write_run,
)
from app.store.runs import end_values


class ForeignLedger(ForeignBranches):
    """Claims, entries and ends of runs, one live run a thread: saved first, then started."""

    async def claim(self, claim: Claim) -> RunRecord:
        key = claim.namespace, claim.run_id
        async with self._lock(claim.namespace, claim.thread_id):
            turns = await self._settled(claim.namespace, claim.thread_id)
            branch = await self._previous(claim, turns)
            await self._check(claim, turns)
            previous = _behind(claim, branch)
            live = self._open(claim, turns, branch or ())
            # No wait between the check and this: whoever claims the id meanwhile finds it taken.
            self._live[key] = live
            try:
                if claim.resumes:
                    await self._mark(claim, previous, claim.run_id)
                await self._add(claim.namespace, live, claim.entries, live.meta, claim.created_at)
            except BaseException as error:
                # If it is stored all the same, the next reader of the thread finds it cut and ends it.
                del self._live[key]
                if claim.resumes:
                    with suppress(AppError):
                        await self._mark(claim, previous, None)
                if isinstance(error, Conflict) and not _is_doubled(claim.entries):
                    raise RunExists(claim.run_id) from None
                raise
        self._remember(*key, claim.thread_id)
        return live.record

    async def append(
        self,
        namespace: str,
        run_id: str,
        entries: Sequence[NewEntry],
        *,
        state: JsonValue | Keep = KEEP,
    ) -> None:
        live = self._live.get((namespace, run_id))
        if live is not None:
            async with live.lock:
                if self._live.get((namespace, run_id)) is live:
                    return await self._append(namespace, live, entries, state)
        if live is None and (namespace, run_id) not in self._places:
            raise NotFound(f"There is no run {run_id}.")
        raise Conflict(f"Run {run_id} is over; nothing can be added to it.")

    async def _append(
        self, namespace: str, live: Live, entries: Sequence[NewEntry], state: JsonValue | Keep
    ) -> None:
        """The state counts only once it is stored."""
        changed = None if isinstance(state, Keep) else with_values(live.meta, {"state": state})
        await self._add(namespace, live, entries, changed, live.record.created_at)
        live.meta = changed or live.meta

    async def add_records(
        self, namespace: str, thread_id: str, entries: Sequence[NewEntry], at: Instant, *, run_id: str
    ) -> str:
        """A thread without runs is unknown here, so the head run gets them."""
        async with self._lock(namespace, thread_id):
            turns = await self._settled(namespace, thread_id)
            if not turns:
                raise NotFound(f"There is no thread {thread_id}.")
            head = read_runs(thread_id, turns)[-1]
            live = self._live.get((namespace, head.id))
            if live is None:
                held = {entry.id for entry in turns[-1].entries}
                live = Live(head, read_attributes(thread_id, turns[0]), {}, held)
            async with live.lock:
                await self._add(namespace, live, entries, None, at)
            return head.id

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
            await self._add(namespace, live, entries, with_values(live.meta, values), at)
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

    async def _previous(self, claim: Claim, turns: Sequence[TurnRow]) -> Sequence[TurnRow] | None:
        """The branch that the run is to follow; none at the start, None for a run that is not there."""
        if isinstance(claim.previous_run_id, Keep):
            return turns
        if claim.previous_run_id is None:
            return ()
        try:
            return await self._turns(claim.namespace, claim.thread_id, claim.previous_run_id) or None
        except NotFound:
            return None

    def _open(self, claim: Claim, turns: Sequence[TurnRow], branch: Sequence[TurnRow]) -> Live:
        """The run behind the branch. What begins a branch of its own tells of the thread, as its first run
        does; a storage puts it behind the head all the same, which its readers are not shown."""
        runs = read_runs(claim.thread_id, branch)
        self._last_seq = max(self._last_seq + 1, number_at(claim.created_at))
        record = opened(claim, self._last_seq, runs[-1] if runs else None)
        thread = read_attributes(claim.thread_id, turns[0]) if turns else claim.thread
        meta = write_run(record, None if branch else thread)
        return Live(record, thread, with_values(meta, {"first": True}) if not branch and turns else meta)

    async def _mark(self, claim: Claim, paused: TurnRow | None, by: str | None) -> None:
        """Notes who answers a paused run, before that is stored: no tool is run for two answers."""
        assert paused is not None
        thread = claim.thread
        save = RunSave(
            namespace=claim.namespace,
            thread_id=claim.thread_id,
            run_id=paused.run_id,
            created_at=claim.created_at,
            conversation_id=thread.conversation_id,
            meta=with_values(paused.meta or {}, {"resumed_by": by}),
        )
        with storage_errors():
            await self._adapter.save(save)

    async def _add(
        self,
        namespace: str,
        live: Live,
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
        live: Live,
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


def _behind(claim: Claim, branch: Sequence[TurnRow] | None) -> TurnRow | None:
    """The run that the claim follows. NotFound if it is not there, or its entry is not; AlreadyResumed if it
    waits for no answer."""
    previous = branch[-1] if branch else None
    asked_for = claim.resumes or claim.branch_after_entry is not None
    if branch is None or (previous is None and asked_for):
        raise NotFound(f"Thread {claim.thread_id} has no such run.", field="run_id")
    if previous is None:
        return None
    after = claim.branch_after_entry
    if after is not None and all(entry.id != after for entry in previous.entries):
        raise NotFound(f"Run {previous.run_id} has no entry {after}.", field="entry_id")
    if claim.resumes and not _waits(previous):
        raise AlreadyResumed(previous.run_id)
    return previous


def _waits(turn: TurnRow) -> bool:
    return status_of_turn(turn) is RunStatus.PAUSED and kept_of(turn.meta).get("resumed_by") is None


def _is_doubled(new: Sequence[NewEntry]) -> bool:
    ids = [entry.id for entry in views.stored_view(entry.entry for entry in new)]
    return len(ids) > len(set(ids))
