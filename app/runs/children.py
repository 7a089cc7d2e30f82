"""Runs of sub-agents, each in a hidden thread below the caller's."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from app.agent.context import ChildOrder, StopSignal
from app.clock import Clock, new_id
from app.conversation.entries import MessageEntry
from app.conversation.messages import user_message
from app.conversation.outcomes import EndReason, RunEnd
from app.errors import AlreadyResumed, NotFound
from app.runs.order import LiveRun, Order
from app.store.adapter import RunRecord, Store, ThreadAttributes


@dataclass(frozen=True, slots=True)
class ManagedChild:
    """A sub-agent's run that has been started."""

    live: LiveRun

    @property
    def thread_id(self) -> str:
        return self.live.record.thread_id

    @property
    def run_id(self) -> str:
        return self.live.record.id

    async def wait(self) -> tuple[RunEnd, str]:
        """The run is the server's: whoever waits for it may stop waiting."""
        return await asyncio.shield(self.live.ended)

    def stop(self, reason: EndReason) -> None:
        self.live.stop.request(reason)


@dataclass(frozen=True, slots=True)
class ManagedChildren:
    """The sub-agents of one run. `stop` is that run's own."""

    caller: Order
    stop: StopSignal
    store: Store
    clock: Clock
    start_run: Callable[[Order], Coroutine[Any, Any, LiveRun]]

    async def start(self, order: ChildOrder) -> ManagedChild:
        """NotFound or AlreadyResumed for a paused run that cannot be taken up; else as a run starts."""
        paused = None if order.resumes is None else await self._paused(order)
        below = self._order(order, paused)
        starting = asyncio.create_task(self.start_run(below), name=f"start {below.run_id}")
        try:
            return ManagedChild(await asyncio.shield(starting))
        except asyncio.CancelledError:
            # The claim goes on without us: nobody would ever stop the run that comes of it.
            starting.add_done_callback(self._stop_started)
            raise

    def _stop_started(self, starting: asyncio.Task[LiveRun]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            starting.result().stop.request(self.stop.reason or EndReason.STOP_REQUESTED)

    async def _paused(self, order: ChildOrder) -> RunRecord:
        child = order.resumes
        assert child is not None
        run = await self.store.get_run(self.caller.namespace, child.thread_id, child.run_id)
        if run is None:
            raise NotFound("The paused run of this agent is gone.")
        if run.resumed_by is not None:
            raise AlreadyResumed(run.id)
        return run

    def _order(self, order: ChildOrder, paused: RunRecord | None) -> Order:
        """The request has no sender: the caller is no person, and nobody who speaks in that thread."""
        caller = self.caller
        said = [user_message(order.text, clock=self.clock)] if order.text else []
        thread = ThreadAttributes(
            agent=order.agent.name,
            created_at=self.clock.now(),
            conversation_id=new_id("conversation"),
            group_id=order.group_id or caller.thread_id,
            parent_thread_id=caller.thread_id,
            hidden=True,
        )
        return Order(
            namespace=caller.namespace,
            sender_id=caller.sender_id,
            thread_id=new_id("thread") if paused is None else paused.thread_id,
            run_id=new_id("run"),
            agent=order.agent,
            entries=[MessageEntry(message) for message in said],
            thread=thread,
            parent_run_id=caller.run_id,
            expected_head=None if paused is None else paused.id,
            resumes=paused,
            answers=order.answers,
        )
