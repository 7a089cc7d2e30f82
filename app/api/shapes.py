"""JSON shapes of threads and runs, and the bodies that change them. camelCase, as AG-UI has it."""

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints
from pydantic.alias_generators import to_camel

from app.agui.interrupts import wire_interrupt
from app.clock import Instant, format_millis
from app.conversation.ids import check_id
from app.conversation.interrupts import Interrupt
from app.errors import InvalidInput
from app.store.adapter import RunRecord, ThreadRecord


class Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Asked(BaseModel):
    """A body. Members that are not known are refused, so that a misspelt one is not lost in silence."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)


def _as_id(value: str) -> str:
    try:
        return check_id(value, "id")
    except InvalidInput as error:
        raise ValueError(error.public) from None


Id = Annotated[str, AfterValidator(_as_id)]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Group = Annotated[str, AfterValidator(lambda value: value and _as_id(value))]
"""A group's id; an empty one is the default group."""
RecordName = Annotated[str, StringConstraints(pattern=r"\S", max_length=200)]
MOST_RECORDS = 100
"""The most records of one request."""


class ThreadShape(Shape):
    """A thread. Counts are of the branch that ends at the head. Times have three fractional digits."""

    thread_id: str
    group_id: str
    parent_thread_id: str | None
    hidden: bool
    title: str | None
    agent: str
    run_count: int
    message_count: int
    last_run_status: str | None
    archived_at: str | None
    created_at: str
    updated_at: str


class ThreadList(Shape):
    threads: list[ThreadShape]
    next_cursor: str | None


class RunShape(Shape):
    """A run. `status` is one of queued, running, paused, completed, failed, stopped, merged.

    `branchAfterEntry` is the last entry of the previous run that stands on this run's branch, null for all of
    it. `interrupts` are what a paused run asks; `resumedBy` is the run that took up the answers. `result` is
    the value of a structured answer.
    """

    run_id: str
    thread_id: str
    agent: str
    sender_id: str | None
    previous_run_id: str | None
    branch_after_entry: str | None
    parent_run_id: str | None
    resumed_by: str | None
    status: str
    end_reason: str | None
    error: dict[str, JsonValue] | None
    interrupts: list[JsonValue]
    usage: list[JsonValue]
    result: JsonValue
    created_at: str
    ended_at: str | None


class RunList(Shape):
    runs: list[RunShape]


class NewThread(Asked):
    """A thread to be made. Without an id it gets one."""

    thread_id: Id | None = None
    title: Title | None = None
    agent: str | None = None
    group_id: Group | None = None
    parent_thread_id: Id | None = None
    hidden: bool = False


class ThreadChange(Asked):
    """What is to change of a thread; absent members stay as they are."""

    title: Title | None = None
    archived: bool | None = None


class NewFork(Asked):
    """A new thread that shares what was said on another up to `runId`, or all of it. Group and parent are
    those of the other unless they are given."""

    thread_id: Id | None = None
    run_id: Id | None = None
    title: Title | None = None
    group_id: Group | None = None
    parent_thread_id: Id | None = None
    hidden: bool = False


class NewRecord(Asked):
    """A record of the application: `value` under a name, in its place among the messages, for no model."""

    name: RecordName
    value: JsonValue
    id: Id | None = None


class NewEntry(NewRecord):
    """A record to be posted. A transient one is shown to those who follow the live run, and not stored."""

    transient: bool = False


class NewEntries(Asked):
    entries: Annotated[list[NewEntry], Field(min_length=1, max_length=MOST_RECORDS)]


class PostedEntry(Shape):
    id: str
    stored: bool


class PostedEntries(Shape):
    """What was posted. `runId` is the run that holds the entries, or that is live; null for transient ones
    that nobody could see."""

    run_id: str | None
    entries: list[PostedEntry]


class NewRun(Asked):
    """A turn in plain words: `text` is said to `agent` on the thread, which is made if it is new.

    `entries` are stored before the text. `previousRunId` names the run to go on from, `head` (as without it)
    or `start`.
    """

    text: Annotated[str, StringConstraints(pattern=r"\S")]
    agent: str | None = None
    run_id: Id | None = None
    message_id: Id | None = None
    previous_run_id: Id | None = None
    entries: Annotated[list[NewRecord], Field(max_length=MOST_RECORDS)] = []
    group_id: Group | None = None
    parent_thread_id: Id | None = None
    hidden: bool = False
    on_disconnect: Literal["continue", "cancel"] = "continue"


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else format_millis(instant)


def thread_shape(thread: ThreadRecord) -> ThreadShape:
    return ThreadShape(
        thread_id=thread.id,
        group_id=thread.group_id,
        parent_thread_id=thread.parent_thread_id,
        hidden=thread.hidden,
        title=thread.title,
        agent=thread.agent,
        run_count=thread.run_count,
        message_count=thread.message_count,
        last_run_status=thread.last_run_status,
        archived_at=_time(thread.archived_at),
        created_at=format_millis(thread.created_at),
        updated_at=format_millis(thread.updated_at),
    )


def run_shape(run: RunRecord) -> RunShape:
    return RunShape(
        run_id=run.id,
        thread_id=run.thread_id,
        agent=run.agent,
        sender_id=run.sender_id,
        previous_run_id=run.previous_run_id,
        branch_after_entry=run.branch_after_entry,
        resumed_by=run.resumed_by,
        parent_run_id=run.parent_run_id,
        status=run.status,
        end_reason=run.end_reason,
        error=None if run.error is None else dict(run.error),
        interrupts=_questions(run),
        usage=list(run.usage),
        result=run.result,
        created_at=format_millis(run.created_at),
        ended_at=_time(run.ended_at),
    )


def _questions(run: RunRecord) -> list[JsonValue]:
    """What a run asks, without what only the server needs to take its calls up again."""
    asked = (Interrupt.model_validate(interrupt) for interrupt in run.interrupts)
    return [cast(JsonValue, wire_interrupt(interrupt)) for interrupt in asked]


def latest_shape(run: RunRecord | None) -> dict[str, Any] | None:
    """The thread's current state as transcript pages carry it."""
    if run is None:
        return None
    return {
        "runId": run.id,
        "status": run.status,
        "interrupts": _questions(run),
        "state": run.state,
        "usage": list(run.usage),
    }
