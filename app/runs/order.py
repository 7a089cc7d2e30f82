"""What is asked of the manager, and what it gives."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from app.agent.context import Runnable, StopSignal
from app.agent.events import RunEvent
from app.agent.prompt import ToolDefinition
from app.conversation.entries import StoredEntry
from app.conversation.interrupts import Answer
from app.conversation.messages import Message
from app.conversation.outcomes import RunEnd
from app.runs.log import EventLog
from app.runs.recorder import Translate
from app.store.adapter import KEEP, Keep, RunRecord, ThreadAttributes


@dataclass(frozen=True, slots=True)
class Order:
    """A run to be started: whose, where, by which agent, on what.

    `entries` open the run. `settled` of them, by their ids, are results that the server gave to calls which
    nobody answered. `held` are messages that came with answers to a paused run: they are said once its calls
    have their results, and kept with the run's input until then.
    """

    namespace: str
    sender_id: str | None
    thread_id: str
    run_id: str
    agent: Runnable
    entries: Sequence[StoredEntry]
    thread: ThreadAttributes
    parent_run_id: str | None = None
    expected_head: str | Keep | None = KEEP
    """The head that the entries were read against; the claim is refused if there is another by now."""
    previous_run_id: str | Keep | None = KEEP
    branch_after_entry: str | None = None
    resumes: RunRecord | None = None
    """The paused run that `answers` take up; it is `previous_run_id` too."""
    answers: Sequence[Answer] = ()
    held: Sequence[Message] = ()
    settled: frozenset[str] = frozenset()
    client_tools: Sequence[ToolDefinition] = ()
    state: JsonValue | Keep = KEEP
    state_differs: bool = False
    meta: Mapping[str, JsonValue] | Keep = KEEP
    input: Mapping[str, JsonValue] | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run of this process. `ended` is done with how it ended and the text of its last answer, once that is
    stored and told."""

    record: RunRecord
    log: EventLog
    translate: Translate
    stop: StopSignal
    task: asyncio.Task[None]
    ended: "asyncio.Future[tuple[RunEnd, str]]"

    def tell(self, event: RunEvent) -> None:
        """Tells the followers of what did not come from the agent and is stored, if it is to be."""
        self.log.append(self.translate(event))
