"""What an agent tells becomes history and then news: commit, translate, append, wake.

What a client sees of a finished message is stored already. Deltas touch no database. Whatever the agent
does, the run ends, its end is stored, and then it is told.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from pydantic import JsonValue

from app.agent.events import (
    AgentEvent,
    Appended,
    MessageDone,
    RunDone,
    RunEvent,
    Snapshot,
    StateChanged,
    StepEnded,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolDone,
)
from app.agent.pairing import result_of, unanswered_calls
from app.clock import Clock
from app.conversation.blocks import ToolCall
from app.conversation.entries import MessageEntry, StoredEntry, TransientEntry
from app.conversation.messages import Message, Role
from app.conversation.outcomes import CALLS_LEFT_OPEN, EndReason, RunEnd, RunStatus
from app.conversation.views import reader_text
from app.errors import AppError, Conflict, OutcomeUnknown, StorageFailed
from app.frames import Frame
from app.runs.held import unsaid
from app.runs.log import EventLog
from app.store.adapter import KEEP, Keep, NewEntry, RunLedger

logger = logging.getLogger(__name__)

Begin = Callable[[], Awaitable[AsyncIterator[AgentEvent]]]
"""Reads what the agent needs and sets it going."""
Translate = Callable[[RunEvent], Sequence[Frame]]
"""Turns events of one run into frames; keeps track of what is open."""

TakeSnapshot = Callable[[], Awaitable[Snapshot]]
"""Reads the thread as it is stored."""

_DELTAS = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})
_BREATH = 64
"""After so many events in a row that waited for nothing, others get a turn."""
DELAYS: Sequence[float] = (0.05, 0.25, 1.0, 3.0)
_CLOSE_SECONDS = 1.0
"""How long an agent that broke off may take to clean up."""


class Renderer(Protocol):
    """Makes the wire form that is stored beside an entry."""

    @property
    def version(self) -> int: ...

    def render(self, entry: StoredEntry) -> str | None: ...


class Recorder:
    """Records one run. `said` are the messages of this run so far, its opening ones included, and `held`
    those that were accepted with it and are stored at its end at the latest.

    `delays` are the seconds between attempts while the database refuses (`DELAYS` if not given). `snapshot`
    reads the thread as it is stored, for the end of a run that pauses.
    """

    def __init__(
        self,
        *,
        namespace: str,
        run_id: str,
        ledger: RunLedger,
        log: EventLog,
        translate: Translate,
        renderer: Renderer,
        clock: Clock,
        agent: str,
        said: Sequence[Message] = (),
        delays: Sequence[float] | None = None,
        held: Sequence[Message] = (),
        snapshot: TakeSnapshot | None = None,
    ) -> None:
        self._namespace = namespace
        self._run_id = run_id
        self._ledger = ledger
        self._log = log
        self._translate = translate
        self._renderer = renderer
        self._clock = clock
        self._agent = agent
        self._said = list(said)
        self._delays = DELAYS if delays is None else delays
        self._held = held
        self._snapshot = snapshot
        self._state: JsonValue | Keep = KEEP
        """The shared state, where it is not stored as it is by now."""
        self._end_in_doubt = False
        """Whether an attempt to store the end broke off without an answer, so that it may stand."""
        self.end: RunEnd | None = None
        """How the run ended, once that was told."""
        self._untold: list[AgentEvent] = []
        """What is stored and told with the end: the last message, or what could not be stored before."""

    @property
    def answer(self) -> str:
        """The text of the last thing that the agent said in this run, as a reader has it."""
        said = (message for message in reversed(self._said) if message.role is Role.ASSISTANT)
        return next(map(reader_text, said), "")

    def know(self, messages: Sequence[Message]) -> None:
        """Messages of earlier runs whose calls this one sees to."""
        self._said[:0] = messages

    async def record(self, begin: Begin) -> bool:
        """Takes events until the run is done, stores its end and tells it.

        False if the end could not be stored: then the followers were told of a failure, and `settle` is to
        be called until it succeeds.
        """
        return await self._finish(await self._outcome(begin))

    async def _outcome(self, begin: Begin) -> RunEnd:
        """Runs the agent and says how it ended; only a cancellation of our own task passes through."""
        events: AsyncIterator[AgentEvent] | None = None
        try:
            events = await begin()
            return await self._take(events)
        except StorageFailed:
            logger.exception("run %s: the conversation could not be read or stored", self._run_id)
            return RunEnd.by(EndReason.STORAGE_FAILED)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            logger.exception("run %s: the agent cancelled itself", self._run_id)
        except (Exception, SystemExit):
            logger.exception("run %s: the agent broke off", self._run_id)
        finally:
            await self._close(events)
        return RunEnd.by(EndReason.INTERNAL_ERROR)

    async def _take(self, events: AsyncIterator[AgentEvent]) -> RunEnd:
        append, translate = self._log.append, self._translate
        unbroken = 0
        async for event in events:
            if type(event) not in _DELTAS or self._untold:
                if isinstance(event, RunDone):
                    return event.end
                if self._waits_for_the_end(event):
                    continue
                await self._commit(event)
            append(translate(event))
            unbroken += 1
            if unbroken == _BREATH:
                unbroken = 0
                await asyncio.sleep(0)
        logger.error("run %s: the agent ended without saying how", self._run_id)
        return RunEnd.by(EndReason.INTERNAL_ERROR)

    def _waits_for_the_end(self, event: AgentEvent) -> bool:
        """The last message of a run is stored in one transaction with its end, and told after it."""
        if isinstance(event, MessageDone) and event.last:
            self._said.append(event.message)
        elif not self._untold or not isinstance(event, StepEnded):
            return False
        self._untold.append(event)
        return True

    async def _commit(self, event: AgentEvent) -> None:
        """Stores what must last. What still cannot be stored after some attempts is kept for the end."""
        if self._untold:
            await self._tell_after_all()
        if isinstance(event, StateChanged):
            self._state = event.state
        entry = _entry_of(event)
        if isinstance(entry, MessageEntry):
            self._said.append(entry.message)
        await self._store(entry, event)

    async def _store(self, entry: StoredEntry | None, event: AgentEvent) -> None:
        if entry is None:
            return
        new = new_entries([entry], self._renderer)
        in_doubt = False
        for delay in (*self._delays, None):
            try:
                await self._ledger.append(self._namespace, self._run_id, new, state=self._state)
                self._state = KEEP
                return
            except Conflict:
                if in_doubt:
                    return  # it had been stored
                raise
            except StorageFailed as error:
                in_doubt = in_doubt or isinstance(error, OutcomeUnknown)
                if delay is None:
                    self._untold.append(event)
                    raise
                await asyncio.sleep(delay)

    async def _tell_after_all(self) -> None:
        """An agent went on behind the message it called its last: what waited for the end is due now."""
        untold, self._untold = self._untold, []
        for event in untold:
            await self._store(_entry_of(event), event)
            self._log.append(self._translate(event))

    async def _close(self, events: AsyncIterator[AgentEvent] | None) -> None:
        """Lets the agent clean up, for a while. Its run ends all the same."""
        if not isinstance(events, AsyncGenerator):
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await events.aclose()
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            logger.exception("run %s: the agent cancelled itself while it cleaned up", self._run_id)
        except (Exception, SystemExit):
            logger.exception("run %s: the agent did not clean up", self._run_id)

    async def _finish(self, end: RunEnd) -> bool:
        for delay in (*self._delays, None):
            try:
                await self._end(end)
                return True
            except AppError:
                logger.exception("run %s: its end could not be stored", self._run_id)
                if delay is not None:
                    await asyncio.sleep(delay)
        self.end = RunEnd.by(EndReason.STORAGE_FAILED)
        self._log.append(self._translate(RunDone(self.end)))
        return False

    async def settle(self) -> None:
        """Stores that the run failed, with all that could not be stored before. AppError if that fails."""
        await self._end(RunEnd.by(EndReason.STORAGE_FAILED))

    async def _end(self, end: RunEnd) -> None:
        """Stores the end, with results for open calls, and then tells the followers."""
        open_calls = [] if end.reason in CALLS_LEFT_OPEN else unanswered_calls(self._said)
        results = call_results(open_calls, end.reason, self._agent, self._clock)
        late = unsaid(self._held, self._said)
        events = [*self._untold, *(ToolDone(result) for result in results), *map(Appended, late)]
        entries = [entry for event in events if (entry := _entry_of(event)) is not None]
        new = new_entries(entries, self._renderer)
        at = self._clock.now()
        try:
            stored = await self._ledger.finish(
                self._namespace, self._run_id, end, at, entries=new, state=self._state
            )
        except OutcomeUnknown:
            self._end_in_doubt = True
            raise
        if stored or self._end_in_doubt:
            for event in events:
                self._log.append(self._translate(event))
        await self._tell_snapshot(end)
        self.end = self.end or end
        self._log.append(self._translate(RunDone(end)))

    async def _tell_snapshot(self, end: RunEnd) -> None:
        """What is stored, where somebody is to answer. The end is told without it if it cannot be read."""
        if end.status is not RunStatus.PAUSED or self._snapshot is None:
            return
        try:
            self._log.append(self._translate(await self._snapshot()))
        except AppError:
            logger.exception("run %s: the thread could not be read for those who answer", self._run_id)


def _entry_of(event: AgentEvent) -> StoredEntry | None:
    """What is to be stored of an event."""
    if isinstance(event, MessageDone | ToolDone):
        return MessageEntry(event.message)
    if isinstance(event, Appended) and not isinstance(event.entry, TransientEntry):
        return event.entry
    return None


def _is_cancelled() -> bool:
    """Whether somebody cancelled the present task, so that a CancelledError is not the agent's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def new_entries(entries: Sequence[StoredEntry], renderer: Renderer) -> list[NewEntry]:
    """The entries with their wire form, ready to be stored."""
    return [NewEntry(entry, renderer.render(entry), renderer.version) for entry in entries]


def call_results(calls: Sequence[ToolCall], reason: EndReason, agent: str, clock: Clock) -> list[Message]:
    """An error result for each call that a run leaves open when it ends."""
    words = f"This call has no result: the run ended ({reason.value}). Whether the tool ran is not known."
    return [result_of(call, words, is_error=True, clock=clock, sender_id=agent) for call in calls]
