"""Agents as tools of others, and their runs where there is no server to keep them."""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from app.agent.context import ChildOrder, RunContext, Runnable, StopSignal
from app.agent.events import AgentEvent, Appended, MessageDone, RunDone, ToolDone
from app.agent.models.base import Model
from app.agent.tool_context import ToolContext
from app.agent.tools import Tool, tool
from app.clock import new_id
from app.conversation.messages import Message, Role, user_message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.views import model_view, reader_text, stored_view
from app.errors import NotFound

_log = logging.getLogger(__name__)


def agent_tool(
    agent: Callable[[Model], Runnable], *, name: str, description: str, group_id: str | None = None
) -> Tool:
    """A tool that has an agent answer a request. `agent` gives it, with the caller's model to use if it has
    none. There is no limit of time but the agent's own."""

    async def ask_agent(request: str, context: ToolContext) -> str:
        return await context.run_agent(agent(context.model), request, group_id=group_id)

    return tool(name=name, description=description, timeout=math.inf)(ask_agent)


@dataclass(frozen=True, slots=True)
class _LocalRun:
    """A run in this process that nobody stores."""

    thread_id: str
    run_id: str
    signal: StopSignal
    task: asyncio.Task[tuple[RunEnd, str]]

    async def wait(self) -> tuple[RunEnd, str]:
        return await asyncio.shield(self.task)

    def stop(self, reason: EndReason) -> None:
        self.signal.request(reason)


class LocalChildren:
    """Runs sub-agents in memory. What a paused one had said is kept until it is taken up again."""

    def __init__(self) -> None:
        self._paused: dict[str, tuple[list[Message], RunEnd]] = {}
        self._tasks: set[asyncio.Task[tuple[RunEnd, str]]] = set()

    def below(self, caller: RunContext) -> "_Below":
        """Those of one run."""
        return _Below(caller, self._paused, self._tasks)


@dataclass(frozen=True, slots=True)
class _Below:
    caller: RunContext
    paused: dict[str, tuple[list[Message], RunEnd]]
    tasks: set[asyncio.Task[tuple[RunEnd, str]]]

    async def start(self, order: ChildOrder) -> _LocalRun:
        """NotFound for a paused run that is not known here."""
        history: list[Message] = []
        end: RunEnd | None = None
        thread_id = new_id("thread")
        if order.resumes is not None:
            if order.resumes.run_id not in self.paused:
                raise NotFound("The paused run of this agent is not known any more.")
            history, end = self.paused.pop(order.resumes.run_id)
            thread_id = order.resumes.thread_id
        if order.text:
            history.append(user_message(order.text, clock=self.caller.clock))
        # Nothing of the caller's own goes down: what is said to it is not said to this one.
        context = RunContext(
            namespace=self.caller.namespace,
            thread_id=thread_id,
            run_id=new_id("run"),
            history=list(history),
            clock=self.caller.clock,
            interrupts=() if end is None else end.interrupts,
            answers={answer.interrupt_id: answer for answer in order.answers},
            children=self,
        )
        task = asyncio.create_task(
            self._run(order.agent, context, history), name=f"run {context.run_id} of {order.agent.name}"
        )
        self.tasks.add(task)
        task.add_done_callback(partial(_done, self.tasks))
        return _LocalRun(thread_id, context.run_id, context.stop, task)

    async def _run(self, agent: Runnable, context: RunContext, history: list[Message]) -> tuple[RunEnd, str]:
        end, answer = RunEnd.by(EndReason.INTERNAL_ERROR), ""
        try:
            async for event in agent.respond(context):
                if isinstance(event, RunDone):
                    end = event.end
                for message in _said(event):
                    history.append(message)
                    if message.role is Role.ASSISTANT:
                        answer = reader_text(message)
        except Exception:
            _log.exception("run %s: agent %s broke off", context.run_id, agent.name)
        if end.interrupts:
            self.paused[context.run_id] = (history, end)
        return end, answer


def _said(event: AgentEvent) -> list[Message]:
    if isinstance(event, MessageDone | ToolDone):
        return [event.message]
    return model_view(stored_view([event.entry])) if isinstance(event, Appended) else []


def _done(tasks: set[asyncio.Task[tuple[RunEnd, str]]], task: asyncio.Task[tuple[RunEnd, str]]) -> None:
    tasks.discard(task)
    if not task.cancelled():
        task.exception()  # looked at: whoever waited has it
