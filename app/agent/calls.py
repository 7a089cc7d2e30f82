"""The calls of one answer, run side by side; what they tell and give, in order."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence

from app.agent.context import Stopped
from app.agent.events import AgentEvent, ToolDone
from app.agent.hook_call import HookFailed
from app.agent.hooks import Abort
from app.agent.pairing import result_of
from app.agent.pausing import Pause, Refused, Resumed, by_call, take_up
from app.agent.toolbox import Toolbox
from app.agent.workplace import Workplace
from app.conversation.blocks import ToolCall
from app.conversation.interrupts import Interrupt
from app.conversation.messages import Message

_CUT_SHORT = "This call has no result: the run was cut short."
_Answer = asyncio.Task[Message | Pause]


class CallBatch:
    """Runs calls, once. Afterwards `interrupts` holds what some of them wait for, and `clients` those that
    the client is to run.

    `handoffs` are agents by the names of the tools that hand over to them.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        toolbox: Toolbox,
        place: Workplace,
        *,
        client_tools: Collection[str] = (),
        handoffs: Mapping[str, str] | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._place = place
        self._handoffs = handoffs or {}
        self._asked = by_call(place.run.interrupts)
        left = set(client_tools) - self._handoffs.keys()
        self.clients = [call for call in calls if call.name in left and call.name not in toolbox]
        self._calls = [call for call in calls if call not in self.clients]
        self.interrupts: list[Interrupt] = []
        self._handoff: str | None = None

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """What the tools tell, as they tell it, and their results in the order of the calls.

        Stopped, HookFailed or Abort, once every tool was stopped and each call has a result.
        """
        running = {call.id: self._start(call) for call in self._calls if call.name not in self._handoffs}
        told = 0
        try:
            for call in self._calls:
                if (task := running.get(call.id)) is None:
                    yield ToolDone(self._hand_over(call))
                else:
                    async for event in self._until(task):
                        yield event
                    for event in self._outcome(task):
                        yield event
                told += 1
        except (Stopped, HookFailed, Abort):
            await _cancel(running.values())
            for event in self._place.outbox.take():
                yield event
            for call in self._calls[told:]:
                yield ToolDone(_last_word(running.get(call.id)) or self._cut_short(call))
            raise
        finally:
            await _cancel(running.values())

    def _start(self, call: ToolCall) -> _Answer:
        waited: Resumed | Refused | Pause = Resumed()
        if call.id in self._asked:
            waited = take_up(self._asked[call.id], self._place.run.answers)
        return asyncio.create_task(self._toolbox.answer(call, self._place, waited))

    async def _until(self, task: _Answer) -> AsyncGenerator[AgentEvent, None]:
        """What is told by whichever call until this one is done."""
        outbox, stop = self._place.outbox, self._place.run.stop
        stop.check()
        while not task.done():
            news = asyncio.wait({task, outbox.news()}, return_when=asyncio.FIRST_COMPLETED)
            await stop.interruptible(news)
            for event in outbox.take():
                yield event
        for event in outbox.take():
            yield event

    def _outcome(self, task: _Answer) -> Iterable[AgentEvent]:
        outcome = task.result()
        if isinstance(outcome, Pause):
            self.interrupts += outcome.interrupts
            return ()
        return (ToolDone(outcome),)

    def _cut_short(self, call: ToolCall) -> Message:
        """Told in its place, so that results keep the order of their calls. Whether the tool had run already
        is left open: hooks that were asked about its result may have been broken off."""
        run, sender = self._place.run, self._place.agent
        return result_of(call, _CUT_SHORT, is_error=True, clock=run.clock, sender_id=sender)

    def _hand_over(self, call: ToolCall) -> Message:
        """The first of several handovers counts: one agent goes on."""
        taken = self._handoff is not None
        if taken:
            words = f"{self._handoff} goes on with the conversation; nobody else can."
        else:
            self._handoff = self._handoffs[call.name]
            words = f"{self._handoff} goes on with the conversation."
        run = self._place.run
        return result_of(call, words, is_error=taken, clock=run.clock, sender_id=self._place.agent)


def _last_word(task: _Answer | None) -> Message | None:
    """The result of a call that was stopped; None for one that has none."""
    if task is None or task.cancelled() or task.exception() is not None:
        return None
    outcome = task.result()
    return None if isinstance(outcome, Pause) else outcome


async def _cancel(tasks: Iterable[_Answer]) -> None:
    """Cancels those that still run and waits for their last words; each is done after its grace."""
    pending = {task for task in tasks if not task.done()}
    for task in pending:
        task.cancel()
    if pending:
        await asyncio.wait(pending)
