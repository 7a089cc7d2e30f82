"""What a run is given, and how it is told to stop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from pydantic import JsonValue

from app.agent.events import AgentEvent
from app.agent.prompt import ToolDefinition
from app.clock import Clock, SystemClock
from app.conversation.interrupts import Answer, ChildRun, Interrupt
from app.conversation.messages import Message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.recall import Recall

T = TypeVar("T")


class StopSignal:
    """Asks a run to end, once, with a reason.

    It reaches a run that waits, and disturbs nothing else, so a commit that is under way is never cut: a wait
    through `interruptible` (for tools) is cancelled, one for the model (see `waking`) is only woken. A run
    that does not wait sees the reason at its next step. No wait runs code of a tool or of a model: these have
    tasks of their own, which the run cancels and leaves alone after a grace.
    """

    def __init__(self) -> None:
        self.reason: EndReason | None = None
        self._wake: Callable[[], None] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._cut = False

    def request(self, reason: EndReason) -> bool:
        """Asks; the first reason stands. False if the run had been asked already."""
        if self.reason is not None:
            return False
        self.reason = reason
        if self._wake is not None:
            self._wake()
        if self._waiting is not None:
            self._cut = self._waiting.cancel()
        return True

    def check(self) -> None:
        """Raises `Stopped` if a stop was asked for."""
        if self.reason is not None:
            raise Stopped(self.reason)

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Generator[None, None, None]:
        """For a wait so frequent that it has to be cheap: a request calls `wake`, and whoever was woken
        calls `check`, before the wait too."""
        self._wake = wake
        try:
            yield
        finally:
            self._wake = None

    async def interruptible(self, awaitable: Awaitable[T]) -> T:
        """Waits for it; raises `Stopped` if a stop was asked for before it was done.

        A cancellation that is not ours passes through. The awaitable must end when it is cancelled.
        """
        if self.reason is not None:
            _discard(awaitable)
            raise Stopped(self.reason)
        task = asyncio.current_task()
        assert task is not None
        self._waiting = task
        try:
            result = await awaitable
        except asyncio.CancelledError:
            reason = self._take_back(task)
            if reason is None:
                raise
            raise Stopped(reason) from None
        finally:
            self._waiting = None
        self._take_back(task)
        return result

    def _take_back(self, task: asyncio.Task[object]) -> EndReason | None:
        """Undoes our cancellation of the task; None if it was somebody else's, or theirs too."""
        if not self._cut:
            return None
        self._cut = False
        return self.reason if task.uncancel() == 0 else None


def _discard(awaitable: Awaitable[object]) -> None:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


class Stopped(Exception):
    """The run was asked to stop, and does not wait any longer."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Inbox(Protocol):
    """Messages that came for a run while it is under way."""

    async def take(self) -> Sequence[Message]:
        """Those that have not been taken yet, in the order in which they came."""
        ...


class NoInbox:
    """Nobody writes to this run."""

    async def take(self) -> Sequence[Message]:
        return ()


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """A run that one agent asks of another.

    `text` is what the other is asked, empty where `resumes` names its paused run, whose questions `answers`
    hold. `group_id` None means the caller's thread id.
    """

    agent: "Runnable"
    call_id: str
    text: str = ""
    group_id: str | None = None
    resumes: ChildRun | None = None
    answers: tuple[Answer, ...] = ()


class ChildHandle(Protocol):
    """A run of another agent that has been started."""

    @property
    def thread_id(self) -> str: ...

    @property
    def run_id(self) -> str: ...

    async def wait(self) -> tuple[RunEnd, str]:
        """How it ended, and the text of its last answer. Cancelling the wait leaves the run alone."""
        ...

    def stop(self, reason: EndReason) -> None:
        """Asks it to end."""
        ...


class Children(Protocol):
    """Starts runs of other agents, each in a hidden thread below the caller's."""

    async def start(self, order: ChildOrder) -> ChildHandle:
        """AppError if it cannot be started."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run, as its agent sees it.

    `history` is the model's view of the branch, this run's opening messages included. `state` is the
    thread's shared state, as it is when the run begins. `answers` are those to `interrupts`, the open
    questions of the paused run that this one takes up, by the id of the interrupt; `held` is what a person
    said along with them, to be heard behind the results. `client_tools` are run by the client. Nothing here
    is written by the agent: what it says, it says in events.
    """

    namespace: str
    thread_id: str
    run_id: str
    history: Sequence[Message]
    sender_id: str | None = None
    state: JsonValue = None
    clock: Clock = field(default_factory=SystemClock)
    stop: StopSignal = field(default_factory=StopSignal)
    interrupts: Sequence[Interrupt] = ()
    answers: Mapping[str, Answer] = field(default_factory=dict[str, Answer])
    client_tools: Sequence[ToolDefinition] = ()
    held: Sequence[Message] = ()
    inbox: Inbox = field(default_factory=NoInbox)
    children: Children | None = None
    """None outside a server; sub-agents are then run in memory."""


class Runnable(Protocol):
    """An agent, as the server drives it: somebody else's object will do."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    def capabilities(self) -> Mapping[str, JsonValue]:
        """What it really does, in the shape of AG-UI's AgentCapabilities."""
        ...

    def accepts(self) -> frozenset[str]:
        """The media it takes beside text, of `image`, `audio`, `video`, `document`."""
        ...

    def recall(self) -> Recall:
        """How much of a branch it is to be given."""
        ...

    def respond(self, context: RunContext) -> AsyncIterator[AgentEvent]:
        """One run. Ends with `RunDone` in every case; a stop is an end like any other."""
        ...
