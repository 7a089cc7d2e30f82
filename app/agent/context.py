"""What a run is given, and how it is told to stop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from pydantic import JsonValue

from app.agent.events import AgentEvent
from app.clock import Clock, SystemClock
from app.conversation.messages import Message
from app.conversation.outcomes import EndReason

T = TypeVar("T")


class StopSignal:
    """Asks a run to end, once, with a reason.

    The run waits for slow things (a model, tools) only through `interruptible`; a request cancels such a
    wait at once and disturbs nothing else, so a commit that is under way is never cut. A run that is not
    waiting sees `reason` at its next step.
    """

    def __init__(self) -> None:
        self.reason: EndReason | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._cut = False

    def request(self, reason: EndReason) -> bool:
        """Asks; the first reason stands. False if the run had been asked already."""
        if self.reason is not None:
            return False
        self.reason = reason
        if self._waiting is not None:
            self._cut = self._waiting.cancel()
        return True

    async def interruptible(self, awaitable: Awaitable[T]) -> T:
        """Waits for it; raises `Stopped` if a stop was asked for before it was done.

        A cancellation that is not ours passes through.
        """
        return await self.waiter()(awaitable)

    def waiter(self) -> "Waiter":
        """The same for many waits of the present task: finding the task out costs more than the wait."""
        task = asyncio.current_task()
        assert task is not None
        return Waiter(self, task)

    def enter(self, task: asyncio.Task[object]) -> None:
        """The task waits from now on, and may be cancelled."""
        self._waiting = task

    def leave(self) -> None:
        """The wait is over, and nothing may be cancelled."""
        self._waiting = None

    def take_back(self, task: asyncio.Task[object]) -> EndReason | None:
        """Undoes our cancellation of the task; None if it was somebody else's, or theirs too."""
        if not self._cut:
            return None
        self._cut = False
        return self.reason if task.uncancel() == 0 else None


class Waiter:
    """Waits of one task that a stop may interrupt."""

    def __init__(self, stop: StopSignal, task: asyncio.Task[object]) -> None:
        self._stop = stop
        self._task = task

    async def __call__(self, awaitable: Awaitable[T]) -> T:
        """As `StopSignal.interruptible`."""
        stop, task = self._stop, self._task
        if stop.reason is not None:
            _discard(awaitable)
            raise Stopped(stop.reason)
        stop.enter(task)
        try:
            result = await awaitable
        except asyncio.CancelledError:
            reason = stop.take_back(task)
            if reason is None:
                raise
            raise Stopped(reason) from None
        finally:
            stop.leave()
        stop.take_back(task)
        return result


def _discard(awaitable: Awaitable[object]) -> None:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


class Stopped(Exception):
    """The wait was ended because the run was asked to stop."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run, as its agent sees it.

    `history` is the model's view of the branch, this run's opening messages included. `state` is the
    thread's shared state. Nothing here is written by the agent: what it says, it says in events.
    """

    namespace: str
    thread_id: str
    run_id: str
    history: Sequence[Message]
    sender_id: str | None = None
    state: JsonValue = None
    clock: Clock = field(default_factory=SystemClock)
    stop: StopSignal = field(default_factory=StopSignal)


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

    def respond(self, context: RunContext) -> AsyncIterator[AgentEvent]:
        """One run. Ends with `RunDone` in every case; a stop is an end like any other."""
        ...
