"""The seams of storage.

`ConversationStore` is what somebody else may implement to keep conversations where they like; three
optional Protocols let it list and page. `RunLedger` is ours: claims, state and ends of runs. The SQL store
implements all of them in the same transactions.

Every call names the namespace first and sees nothing outside it. Ids and times are made by the caller;
a store keeps them. Order is the order of insertion, never that of clocks or ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from app.clock import Instant
from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunEnd, RunStatus

DEFAULT_GROUP = "default"
MOST_PER_PAGE = 200
"""The most rows of one page, of whatever kind."""


class Keep:
    """The type of `KEEP`."""


KEEP = Keep()
"""Stands for "leave what is stored", where None is a value of its own."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be appended, with its rendering for the wire if the caller made one.

    `wire` is a JSON array of AG-UI messages as text, for clients of version `renderer`.
    """

    entry: StoredEntry
    wire: str | None = None
    renderer: int = 0


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A stored entry. `seq` grows with insertion over the whole store and has gaps."""

    seq: int
    run_id: str
    entry: StoredEntry


@dataclass(frozen=True, slots=True)
class WireRow:
    """A stored entry for hydration: its rendering, or (if that is missing or of another renderer) the
    entry itself."""

    seq: int
    run_id: str
    wire: str | None
    entry: StoredEntry | None


@dataclass(frozen=True, slots=True)
class ThreadAttributes:
    """What a thread gets when it is made and keeps for ever after."""

    agent: str
    created_at: Instant
    conversation_id: str
    group_id: str = DEFAULT_GROUP
    parent_thread_id: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread as listed. Counts are of the branch that ends at the head, messages those a reader sees."""

    id: str
    agent: str
    conversation_id: str
    group_id: str
    parent_thread_id: str | None
    hidden: bool
    title: str | None
    archived_at: Instant | None
    head_run_id: str | None
    run_count: int
    message_count: int
    last_run_status: RunStatus | None
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run. `seq` is its number over the whole store; `usage` and `error` are JSON."""

    seq: int
    id: str
    thread_id: str
    agent: str
    sender_id: str | None
    previous_run_id: str | None
    parent_run_id: str | None
    status: RunStatus
    end_reason: str | None
    epoch: int
    state: JsonValue
    meta: Mapping[str, JsonValue] | None
    input: Mapping[str, JsonValue] | None
    interrupts: Sequence[JsonValue]
    usage: Sequence[JsonValue]
    error: Mapping[str, JsonValue] | None
    digest: str | None
    created_at: Instant
    ended_at: Instant | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The start of a run: it and its opening entries are stored in one transaction, or nothing is.

    `thread` is used where the thread does not exist yet. `state` and `meta` replace what the head run left,
    or keep it.
    """

    namespace: str
    thread_id: str
    run_id: str
    thread: ThreadAttributes
    agent: str
    sender_id: str | None
    created_at: Instant
    entries: Sequence[NewEntry] = ()
    title: str | None = None
    parent_run_id: str | None = None
    expected_head: str | Keep | None = KEEP
    """The head run the caller has read; None for a thread without one, or no thread. HeadMoved if it is
    another by now; KEEP takes whichever it is."""
    state: JsonValue | Keep = KEEP
    meta: Mapping[str, JsonValue] | Keep = KEEP
    input: Mapping[str, JsonValue] | None = None
    digest: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class RunSave:
    """One incremental save of the adapter contract.

    An unknown run id makes a run (and its thread, if that is new too) after `previous_run_id`, or after the
    thread's head where that is None. A known one gets the entries appended; `meta` replaces what is stored
    unless it is None; thread, conversation, previous run and creation time never change.
    """

    namespace: str
    thread_id: str
    run_id: str
    created_at: Instant
    conversation_id: str
    entries: Sequence[StoredEntry] = ()
    previous_run_id: str | None = None
    meta: Mapping[str, JsonValue] | None = None
    agent: str = "assistant"
    group_id: str = DEFAULT_GROUP
    parent_thread_id: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One run of a transcript with its stored entries, in order."""

    run_id: str
    previous_run_id: str | None
    status: RunStatus
    created_at: Instant
    meta: Mapping[str, JsonValue] | None
    entries: Sequence[StoredEntry]


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Complete turns, oldest first. `next_before_run_id` is None at the start of history.

    `latest` is the thread's head run, the same on every page; None for a thread without runs.
    """

    rows: Sequence[TurnRow]
    next_before_run_id: str | None
    latest: RunRecord | None


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Entries of a branch for hydration, oldest first; `next_before` is None at the start of history."""

    rows: Sequence[WireRow]
    next_before: str | None


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """Which threads to list, newest activity first. None means: do not filter.

    `limit` is 1 to MOST_PER_PAGE.
    """

    limit: int = 50
    cursor: str | None = None
    include_hidden: bool = False
    group_id: str | None = None
    parent_thread_id: str | None = None
    agent: str | None = None
    archived: bool | None = None


@dataclass(frozen=True, slots=True)
class ThreadPage:
    threads: Sequence[ThreadRecord]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ThreadPatch:
    """What may change of a thread. KEEP leaves a field as it is; `archived_at` None brings it back."""

    title: str | Keep = KEEP
    archived_at: Instant | Keep | None = KEEP


class ConversationStore(Protocol):
    """Keeps runs and gives them back. The smallest thing a storage must do.

    It needs to know nothing of how a run stands: a `TurnRow` may always say completed. What the server must
    find again it keeps in `meta`, under `app.store.run_meta.KEY`; meta comes back as it was given.
    `app.store.foreign.ForeignStore` makes a whole store of one. Anything it raises that is no AppError counts
    as StorageFailed, and the save is tried again.
    """

    async def save(self, save: RunSave) -> None:
        """Stores a run or adds to it. NotFound if `previous_run_id` names no run of the thread;
        Conflict if the run id belongs to another thread."""
        ...

    async def load(
        self, namespace: str, thread_id: str, previous_run_id: str | None = None
    ) -> Sequence[TurnRow]:
        """The branch that ends at `previous_run_id`, or at the head, oldest first.

        An unknown thread is an empty branch; NotFound if `previous_run_id` names no run of the thread.
        """
        ...

    async def close(self) -> None:
        """Releases everything. Closing twice is harmless; any later call raises StoreClosed."""
        ...


@runtime_checkable
class ThreadLister(Protocol):
    """Optional: threads for a picker."""

    async def list_threads(self, namespace: str, query: ThreadQuery) -> ThreadPage:
        """InvalidInput (field `cursor`) for a cursor that was not made by this listing."""
        ...


@runtime_checkable
class TranscriptReader(Protocol):
    """Optional: what was said, apart from what a model is given."""

    async def transcript(
        self, namespace: str, thread_id: str, run_id: str | None = None
    ) -> Sequence[TurnRow]:
        """Every turn of the branch that ends at `run_id` or the head, oldest first. NotFound as in `load`."""
        ...


@runtime_checkable
class TranscriptPageReader(Protocol):
    """Optional: the transcript in pages, each with a bounded amount of work."""

    async def transcript_page(
        self,
        namespace: str,
        thread_id: str,
        *,
        limit: int = 50,
        before_run_id: str | None = None,
        run_id: str | None = None,
    ) -> TranscriptPage:
        """The newest `limit` (1 to MOST_PER_PAGE) turns older than `before_run_id`. InvalidInput (field
        `before_run_id`) if that is no run of the thread; NotFound if `run_id` is none."""
        ...


class RunLedger(Protocol):
    """Who runs what, and how it ended. Guards are the database's own."""

    async def claim(self, claim: Claim) -> RunRecord:
        """Starts a run on a thread at rest, after its head run. RunExists if the run id is taken in the
        namespace, else ThreadBusy if the thread has a live run, else HeadMoved if its head is not the
        expected one; nothing is stored then."""
        ...

    async def append(self, namespace: str, run_id: str, entries: Sequence[NewEntry]) -> None:
        """Adds entries to a running run. Conflict if it is not running any more."""
        ...

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
        """Ends a running run, storing last entries with it. False, and nothing stored, if it had ended."""
        ...

    async def live_runs(self) -> Sequence[tuple[str, RunRecord]]:
        """All runs that hold a thread, of every namespace, as (namespace, run). For start and shutdown."""
        ...


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """What intake must know of a thread: its head run and which of the asked entry ids it holds."""

    thread: ThreadRecord | None
    head: RunRecord | None
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """Entry id to run id, for the asked ids that stand on the head's branch."""


class ThreadStore(ThreadLister, TranscriptReader, TranscriptPageReader, Protocol):
    """What the API of a whole server needs beside the two seams."""

    async def create_thread(
        self, namespace: str, thread_id: str, thread: ThreadAttributes, title: str | None = None
    ) -> ThreadRecord:
        """Makes an empty thread. Conflict if it exists."""
        ...

    async def get_thread(self, namespace: str, thread_id: str) -> ThreadRecord | None: ...

    async def patch_thread(
        self, namespace: str, thread_id: str, patch: ThreadPatch, at: Instant
    ) -> ThreadRecord | None:
        """Changes title or archiving; `updated_at` stays, for nothing was said. None: no such thread."""
        ...

    async def delete_thread(self, namespace: str, thread_id: str) -> bool:
        """Takes the thread, its runs and entries, and the hidden children it has. ThreadBusy if one of
        them has a live run. False: no such thread."""
        ...

    async def head(self, namespace: str, thread_id: str, entry_ids: Sequence[str]) -> HeadRecord: ...

    async def get_run(self, namespace: str, thread_id: str, run_id: str) -> RunRecord | None: ...

    async def runs(self, namespace: str, thread_id: str) -> Sequence[RunRecord]:
        """Every run of the thread, of every branch, oldest first."""
        ...

    async def run_entries(self, namespace: str, run_id: str) -> Sequence[EntryRow]:
        """The stored entries of one run, oldest first."""
        ...

    async def messages(
        self,
        namespace: str,
        thread_id: str,
        *,
        renderer: int,
        limit: int | None = None,
        before: str | None = None,
        run_id: str | None = None,
    ) -> MessagePage:
        """Entries that a reader may see, for hydration. InvalidInput (field `before`) for a cursor of
        another thread or none of ours, NotFound if `run_id` is no run of the thread."""
        ...


class Store(ConversationStore, ThreadStore, RunLedger, Protocol):
    """The SQL store: all of it."""
