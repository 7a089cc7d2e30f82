"""What an agent tells becomes history and then news: commit, translate, append, wake.

What a client sees of a finished message is stored already. Deltas touch no database.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Protocol

from pydantic import JsonValue

from app.agent.events import (
    AgentEvent,
    Appended,
    MessageDone,
    RunDone,
    RunEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolDone,
)
from app.agent.pairing import unanswered_calls
from app.clock import Clock
from app.conversation.blocks import ToolCall
from app.conversation.entries import MessageEntry, StoredEntry
from app.conversation.messages import Message, tool_result_message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.views import stored_view
from app.errors import AppError, StorageFailed
from app.frames import Frame
from app.runs.log import EventLog
from app.store.adapter import KEEP, Keep, NewEntry, RunLedger

logger = logging.getLogger(__name__)

Translate = Callable[[RunEvent], Sequence[Frame]]
"""Turns events of one run into frames; keeps track of what is open."""

_DELTAS = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})
_BREATH = 64
"""After so many events in a row that waited for nothing, others get a turn."""
_FINISH_DELAYS = (0.05, 0.25, 1.0, 3.0)
"""Seconds between attempts to store the end of a run while the database refuses."""


class Renderer(Protocol):
    """Makes the wire form that is stored beside an entry."""

    @property
    def version(self) -> int: ...

    def render(self, entry: StoredEntry) -> str | None: ...


class Recorder:
    """Records one run. `said` are the messages of this run so far, its opening ones included."""

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

    async def record(self, events: AsyncIterator[AgentEvent]) -> RunEnd:
        """Takes events until the run is done and returns how it ended. The end is stored and told."""
        try:
            end = await self._take(events)
        except StorageFailed:
            logger.exception("run %s: history could not be stored", self._run_id)
            end = RunEnd.by(EndReason.STORAGE_FAILED)
        except Exception:
            logger.exception("run %s: the agent broke off", self._run_id)
            end = RunEnd.by(EndReason.INTERNAL_ERROR)
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()
        await self.finish(end)
        return end

    async def _take(self, events: AsyncIterator[AgentEvent]) -> RunEnd:
        append, translate = self._log.append, self._translate
        unbroken = 0
        async for event in events:
            if type(event) not in _DELTAS:
                if isinstance(event, RunDone):
                    return event.end
                await self._commit(event)
            append(translate(event))
            unbroken += 1
            if unbroken == _BREATH:
                unbroken = 0
                await asyncio.sleep(0)
        logger.error("run %s: the agent ended without saying how", self._run_id)
        return RunEnd.by(EndReason.INTERNAL_ERROR)

    async def _commit(self, event: AgentEvent) -> None:
        if isinstance(event, MessageDone | ToolDone):
            await self._store([MessageEntry(event.message)])
            self._said.append(event.message)
        elif isinstance(event, Appended):
            await self._store(stored_view([event.entry]))

    async def _store(self, entries: Sequence[StoredEntry]) -> None:
        if entries:
            await self._ledger.append(self._namespace, self._run_id, self._new(entries))

    def _new(self, entries: Sequence[StoredEntry]) -> list[NewEntry]:
        return new_entries(entries, self._renderer)

    async def finish(self, end: RunEnd, state: JsonValue | Keep = KEEP) -> None:
        """Stores the end, answers open calls, and then tells the followers.

        While the database refuses it is asked again, for as long as the delays say; then the followers are
        told all the same, and the run is settled at the next start.
        """
        results = call_results(unanswered_calls(self._said), end.reason, self._agent, self._clock)
        entries = self._new([MessageEntry(result) for result in results])
        if await self._store_end(end, entries, state):
            for result in results:
                self._log.append(self._translate(ToolDone(result)))
        self._log.append(self._translate(RunDone(end)))

    async def _store_end(self, end: RunEnd, entries: Sequence[NewEntry], state: JsonValue | Keep) -> bool:
        for delay in (*_FINISH_DELAYS, None):
            try:
                return await self._ledger.finish(
                    self._namespace, self._run_id, end, self._clock.now(), entries=entries, state=state
                )
            except AppError:
                logger.exception("run %s: its end could not be stored", self._run_id)
                if delay is not None:
                    await asyncio.sleep(delay)
        return False


def new_entries(entries: Sequence[StoredEntry], renderer: Renderer) -> list[NewEntry]:
    """The entries with their wire form, ready to be stored."""
    return [NewEntry(entry, renderer.render(entry), renderer.version) for entry in entries]


def call_results(calls: Sequence[ToolCall], reason: EndReason, agent: str, clock: Clock) -> list[Message]:
    """An error result for each call that a run leaves open when it ends."""
    words = f"This call has no result: the run ended ({reason.value}). Whether the tool ran is not known."
    return [
        tool_result_message(call.id, call.name, words, is_error=True, clock=clock, sender_id=agent)
        for call in calls
    ]
