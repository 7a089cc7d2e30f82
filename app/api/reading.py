"""Reads of the stored conversation what a request to run must be held against."""

from dataclasses import dataclass

from app.agui.branching import HEAD, START, Branch, Heard, Place, branch_off, hear, wished
from app.agui.client_calls import OpenCall, holds_an_answer, open_calls
from app.agui.input import RunInput
from app.agui.intake import Past
from app.agui.options import PREVIOUS_RUN_FIELD
from app.api.records import refuse_known
from app.conversation.entries import StoredEntry
from app.conversation.messages import Role
from app.conversation.outcomes import EndReason
from app.conversation.views import model_view
from app.errors import NotFound
from app.store.adapter import HeadRecord, Keep, RunRecord, Store

_LEAVES_CALLS = frozenset({EndReason.CLIENT_TOOLS, EndReason.INTERRUPTED})
"""Ends of a run that leave calls without results; at any other all have theirs."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A request held against its thread. `head` is where it goes on from unless its list leads elsewhere,
    and `thread_head` the thread's head run as it was then."""

    head: HeadRecord
    thread_head: str | None
    heard: Heard
    past: Past


class Reader:
    """Reads one thread of one namespace, once: the entries of a run are fetched no second time."""

    def __init__(self, store: Store, namespace: str, thread_id: str) -> None:
        self._store = store
        self._namespace = namespace
        self._thread_id = thread_id
        self._fetched: dict[str, list[StoredEntry]] = {}

    async def read(self, asked: RunInput) -> Reading:
        """NotFound, by the field of the wish, if it names no run of the thread; Conflict for a record whose
        id the thread holds."""
        wish = asked.options.previous_run_id
        named = None if wish in (None, HEAD, START) else wish
        head = await self._head(asked, named)
        refuse_known(asked.records, frozenset(head.known))
        heard = hear(asked.messages, head.known)
        tip = await self._tip(head.head) if self._needs_tip(heard, head) else head.head
        place = await self._place(heard, head, tip)
        awaits = heard.is_empty and await self._awaits_answer(tip)
        branch = branch_off(heard, place, wish, awaits=awaits)
        base = await self._base(branch or wished(wish), head, place)
        asked_by = None if wish == START else head.head
        past = Past(branch, base, await self._open_calls(branch, base), asked_by)
        return Reading(head, _head_of(head, named), heard, past)

    async def _head(self, asked: RunInput, run_id: str | None) -> HeadRecord:
        """Reads an empty thread, too, as one that has no such run."""
        ids = asked.entry_ids()
        missing = NotFound(
            f"There is no run {run_id!r} on thread {self._thread_id!r}.", field=PREVIOUS_RUN_FIELD
        )
        try:
            head = await self._store.head(self._namespace, self._thread_id, ids, run_id=run_id)
        except NotFound:
            raise missing from None
        if run_id is not None and head.head is None:
            raise missing
        return head

    def _needs_tip(self, heard: Heard, head: HeadRecord) -> bool:
        """Whether it matters that nothing may have been said in the head run itself."""
        known = heard.last_known
        if head.head is None:
            return False
        return heard.is_empty or (known is not None and head.known[known.id] != head.head.id)

    async def _tip(self, run: RunRecord | None) -> RunRecord | None:
        """The last run of the branch in which anything was said: one that fails at once says nothing."""
        while run is not None and not _says_anything(await self._entries(run)):
            run = await self._previous(run)
        return run

    async def _place(self, heard: Heard, head: HeadRecord, tip: RunRecord | None) -> Place | None:
        if heard.last_known is None:
            return None
        run_id = head.known[heard.last_known.id]
        run = tip if tip is not None and tip.id == run_id else await self._run(run_id)
        if run is None:
            return None
        return Place(run, await self._entries(run), at_tip=tip is not None and tip.id == run_id)

    async def _awaits_answer(self, tip: RunRecord | None) -> bool:
        """Whether the last thing said was said by a person."""
        entries = [] if tip is None else await self._entries(tip)
        messages = model_view(entries)
        return bool(messages) and messages[-1].role is Role.USER

    async def _base(self, branch: Branch, head: HeadRecord, place: Place | None) -> RunRecord | None:
        """The run that a branch continues."""
        previous = branch.previous_run_id
        if isinstance(previous, Keep):
            return head.head
        for run in (head.head, place.run if place is not None else None):
            if run is not None and run.id == previous:
                return run
        return None if previous is None else await self._run(previous)

    async def _open_calls(self, branch: Branch | None, base: RunRecord | None) -> tuple[OpenCall, ...]:
        """What the run that is continued left open where it is left. Only a run that paused again holds more
        than results behind an open call, so only there a cut leaves one."""
        if base is None or base.end_reason not in _LEAVES_CALLS:
            return ()
        after = None if branch is None else branch.after_entry
        run: RunRecord | None = base
        maker, entries = base, _until(await self._entries(base), after)
        while run is not None and not holds_an_answer(entries):
            cut, run = run.branch_after_entry, await self._previous(run)
            if run is not None:
                maker, entries = run, [*_until(await self._entries(run), cut), *entries]
        return open_calls(
            entries, maker, asked=[one.get("callId") for one in base.interrupts if isinstance(one, dict)]
        )

    async def _run(self, run_id: str) -> RunRecord | None:
        return await self._store.get_run(self._namespace, self._thread_id, run_id)

    async def _previous(self, run: RunRecord) -> RunRecord | None:
        return None if run.previous_run_id is None else await self._run(run.previous_run_id)

    async def _entries(self, run: RunRecord) -> list[StoredEntry]:
        if run.id not in self._fetched:
            rows = await self._store.run_entries(self._namespace, run.id)
            self._fetched[run.id] = [row.entry for row in rows]
        return self._fetched[run.id]


def _head_of(head: HeadRecord, named: str | None) -> str | None:
    if named is not None:
        return None if head.thread is None else head.thread.head_run_id
    return None if head.head is None else head.head.id


def _says_anything(entries: list[StoredEntry]) -> bool:
    return bool(model_view(entries))


def _until(entries: list[StoredEntry], last: str | None) -> list[StoredEntry]:
    """The entries up to a cut."""
    for at, entry in enumerate(entries):
        if entry.id == last:
            return entries[: at + 1]
    return entries
