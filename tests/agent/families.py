"""Agents that ask other agents, whose tools ask people."""

from collections.abc import Sequence

from app.agent.agent import Agent
from app.agent.events import AgentEvent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tools import Tool, ToolLike, tool
from app.conversation.interrupts import Answer, Interrupt
from app.conversation.messages import Message, Role
from tests.agent.running import QUICK, bounded


def asks(name: str, request: str = "pay the bill", id: str = "a") -> CallPiece:
    return CallPiece(id, f'{{"request": "{request}"}}', name=name, call_id=id)


def calls(name: str, id: str = "c") -> CallPiece:
    return CallPiece(id, "{}", name=name, call_id=id)


def paying(log: list[str]) -> Tool:
    @tool(approval=True)
    def pay() -> str:
        log.append("paid")
        return "paid"

    return pay


def agent(name: str, *replies: Reply, tools: Sequence[ToolLike] = ()) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(replies)
    return Agent(name, model=model, tools=tools, limits=QUICK), model


async def told(agent: Agent, text: str = "go") -> list[AgentEvent]:
    return [event async for event in bounded(agent.run(text))]


async def resumed(agent: Agent, interrupts: Sequence[Interrupt], approved: bool = True) -> list[AgentEvent]:
    answers = [Answer(interrupt.id, payload={"approved": approved}) for interrupt in interrupts]
    return [event async for event in bounded(agent.resume(answers))]


def results(messages: Sequence[Message]) -> list[tuple[str, bool]]:
    """The text of every result, and whether it is an error."""
    found = [message for message in messages if message.role is Role.TOOL_RESULT]
    return [(message.join_text(), message.is_error) for message in found]
