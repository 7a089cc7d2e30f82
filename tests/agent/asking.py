"""Asks an agent: one whose provider answers with recordings, or one that calls one tool."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.agent.agent import Agent
from app.agent.events import AgentEvent
from app.agent.limits import Limits
from app.agent.models.base import CallPiece
from app.agent.models.providers import ProviderKeys, ProviderModel, make_model
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolLike, as_tool
from app.conversation.messages import Message, Role
from app.conversation.outcomes import RunEnd
from tests.agent.replay import Provider, Recording, provider
from tests.agent.running import QUICK, answer, collect, end_of, kept

KEY = "sk-a-secret-key"


def get_weather(city: str) -> str:
    """Tells the weather."""
    return f"sunny in {city}"


def get_time(tz: str = "UTC") -> str:
    """Tells the time."""
    return f"noon in {tz}"


def keys_for(address: str) -> ProviderKeys:
    """Keys, and every provider at that address."""
    return ProviderKeys(
        openai_api_key=KEY,
        openai_base_url=f"{address}/v1",
        anthropic_api_key=KEY,
        anthropic_base_url=address,
    )


@asynccontextmanager
async def model_at(
    address: str, spec: str, *, server_tools: Sequence[str] = ()
) -> AsyncGenerator[ProviderModel]:
    """A model of that address, closed at the end."""
    made = make_model(spec, keys_for(address), server_tools=server_tools)
    assert isinstance(made, ProviderModel)
    try:
        yield made
    finally:
        await made.aclose()


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one run, and what the provider was sent."""

    events: Sequence[AgentEvent]
    server: Provider

    @property
    def messages(self) -> list[Message]:
        return kept(self.events)

    @property
    def end(self) -> RunEnd:
        return end_of(self.events)

    @property
    def first(self) -> Message:
        return self.messages[0]

    @property
    def results(self) -> list[str]:
        return [message.join_text() for message in self.messages if message.role is Role.TOOL_RESULT]


def agent_on(model: ProviderModel, limits: Limits = QUICK) -> Agent:
    return Agent("bot", model=model, instructions="Be good.", tools=[get_weather, get_time], limits=limits)


async def ask(*recordings: Recording, spec: str = "openai:model-a", limits: Limits = QUICK) -> Asked:
    """Says hi to an agent whose provider gives these recordings in turn, the last one again and again."""
    async with provider(*recordings) as server, model_at(server.address, spec) as model:
        return Asked(await collect(agent_on(model, limits).run("hi")), server)


async def call(made: ToolLike, arguments: str = "", *, name: str | None = None) -> Message:
    """The result of one call to one tool, by way of a run."""
    known = as_tool(made)
    piece = CallPiece("0", arguments, name=name or known.name, call_id="c")
    told = await answer(
        Agent("bot", model=ScriptedModel([[piece], "end"]), tools=[known], limits=QUICK), "go"
    )
    return kept(told)[1]
