"""What goes into a store and what comes out of it.

Ids and times are made by the caller; a store keeps them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from app.clock import Instant
from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunStatus

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
    """A run. `seq` is its number over the whole store; `usage`, `error` and `result` are JSON, and
    `interrupts` what `Interrupt` reads.

    `branch_after_entry` is the last entry of the previous run that stands on this run's branch; None for all
    of it. `resumed_by` is the run that answered the interrupts of this one.
    """

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
    branch_after_entry: str | None = None
    resumed_by: str | None = None
    result: JsonValue = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The start of a run: it and its opening entries are stored in one transaction, or nothing is.

    `thread` is used where the thread does not exist yet. The run follows `previous_run_id`, cut behind its
    entry `branch_after_entry` if that is given; by default it follows the head. `resumes` tells that it
    answers the interrupts of the previous run, which must be paused and unanswered. `state` and `meta`
    replace what the previous run left, or keep it.
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
    previous_run_id: str | Keep | None = KEEP
    """None begins a branch with nothing before it."""
    branch_after_entry: str | None = None
    resumes: bool = False
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
    """Entries of a branch for hydration, oldest first; `next_before` is None at the start of history.

    Messages that a reader sees, and application records, which a page counts like messages.
    """

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


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """What intake must know of a thread: its head run and which of the asked entry ids it holds."""

    thread: ThreadRecord | None
    head: RunRecord | None
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """Entry id to run id, for the asked ids that the thread holds: on the branch that was asked for if the
    entry stands there, and else in the newest run that holds it."""
