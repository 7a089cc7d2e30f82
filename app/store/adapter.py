"""The seams of storage.

`ConversationStore` is what somebody else may implement to keep conversations where they like; three
optional Protocols let it list and page. `RunLedger` is ours: claims, state and ends of runs. The SQL store
implements all of them in the same transactions.

Every call names the namespace first and sees nothing outside it. Ids and times are made by the caller;
a store keeps them. Order is the order of insertion, never that of clocks or ids.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from app.clock import Instant
from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunEnd
from app.conversation.recall import Recall
from app.store.values import (
    DEFAULT_GROUP,
    KEEP,
    MOST_PER_PAGE,
    Claim,
    EntryRow,
    HeadRecord,
    Keep,
    MessagePage,
    NewEntry,
    RunRecord,
    RunSave,
    ThreadAttributes,
    ThreadPage,
    ThreadPatch,
    ThreadQuery,
    ThreadRecord,
    TranscriptPage,
    TurnRow,
    WireRow,
)

__all__ = [
    "DEFAULT_GROUP",
    "KEEP",
    "MOST_PER_PAGE",
    "Claim",
    "ConversationStore",
    "EntryRow",
    "HeadRecord",
    "Keep",
    "MessagePage",
    "NewEntry",
    "RunLedger",
    "RunRecord",
    "RunSave",
    "Store",
    "ThreadAttributes",
    "ThreadLister",
    "ThreadPage",
    "ThreadPatch",
    "ThreadQuery",
    "ThreadRecord",
    "ThreadStore",
    "TranscriptPage",
    "TranscriptPageReader",
    "TranscriptReader",
    "TurnRow",
    "WireRow",
]


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
        """Starts a run on a thread at rest. RunExists if the run id is taken in the namespace, else
        ThreadBusy if the thread has a live run, else HeadMoved if its head is not the expected one, else
        NotFound if the previous run is none of the thread's or holds no such entry, else AlreadyResumed;
        Conflict for the id of a thread that was deleted. Nothing is stored then. A previous run that is live
        in another thread is ThreadBusy too."""
        ...

    async def append(
        self,
        namespace: str,
        run_id: str,
        entries: Sequence[NewEntry],
        *,
        state: JsonValue | Keep = KEEP,
    ) -> None:
        """Adds entries to a running run, and its state if that is given, in one transaction. Conflict if it
        is not running any more."""
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

    async def delete_thread(self, namespace: str, thread_id: str, at: Instant) -> bool:
        """Takes the thread, its runs and entries, and the hidden children it has. Runs that a fork still
        reaches stay, reachable only through it, and the thread's id is not usable again until they go too.
        ThreadBusy if one of the threads has a live run. False: no such thread."""
        ...

    async def head(
        self, namespace: str, thread_id: str, entry_ids: Sequence[str], *, run_id: str | None = None
    ) -> HeadRecord:
        """The head's branch, or the one that ends at `run_id`, which then stands for the head. NotFound if
        that is no run of the thread."""
        ...

    async def recall(self, namespace: str, run_id: str, recall: Recall) -> Sequence[StoredEntry]:
        """What stands on the branch before this run, oldest first, as far back as asked. The work grows with
        what is given and not with the thread."""
        ...

    async def fork_thread(
        self,
        namespace: str,
        thread_id: str,
        new_thread_id: str,
        thread: ThreadAttributes,
        *,
        run_id: str | None = None,
        title: str | None = None,
    ) -> ThreadRecord:
        """A new thread whose head is `run_id`, or the head, of this one. Nothing is copied: both share what
        was said so far, and the conversation. Of `thread` the conversation and agent are not used; without a
        `title` it has that of this one. NotFound for an unknown thread or run, ThreadBusy for a run that is
        live, Conflict if the new id exists, NotSupported over an adapter."""
        ...

    async def add_records(
        self, namespace: str, thread_id: str, entries: Sequence[NewEntry], at: Instant, *, run_id: str
    ) -> str:
        """Adds application records to the thread's head run, whatever its status, and returns that run. A
        thread without runs, or whose head is an ended run of other threads too, gets a completed one,
        `run_id`, that holds them. NotFound for an unknown thread, Conflict for an entry id that the run holds
        already."""
        ...

    async def get_run(self, namespace: str, thread_id: str, run_id: str) -> RunRecord | None: ...

    async def runs(self, namespace: str, thread_id: str) -> Sequence[RunRecord]:
        """Every run of the thread, of every branch, and those before it that it shares, oldest first."""
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
