"""Agents with hooks, and what came of their calls."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from app.agent.agent import Agent
from app.agent.events import AgentEvent, ToolDone
from app.agent.hooks import HookContext
from app.agent.limits import Limits
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.conversation.messages import Message
from tests.agent.running import QUICK, bounded

Log = list[str]


class Diary:
    """One object that serves every kind of hook, and notes what it was asked."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, given: HookContext) -> None:
        self.notes.append(type(given).__name__)


def call(name: str, call_id: str, arguments: str = "{}") -> CallPiece:
    return CallPiece(call_id, arguments, name=name, call_id=call_id)


def results(events: Sequence[AgentEvent]) -> list[Message]:
    return [event.message for event in events if isinstance(event, ToolDone)]


def pay_into(log: Log) -> Callable[[int], str]:
    def pay(amount: int) -> str:
        log.append(f"paid {amount}")
        return f"paid {amount}"

    return pay


def paying(log: Log, limits: Limits = QUICK, **hooks: Any) -> Agent:
    """An agent that calls `pay` with 5 and is content then."""
    model = ScriptedModel([[call("pay", "c", '{"amount": 5}')], "end"])
    return Agent("bot", model=model, tools=[pay_into(log)], limits=limits, **hooks)


async def listed(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    return [event async for event in bounded(events)]
