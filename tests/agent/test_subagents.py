"""Agents as tools of others, with no server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import pytest

from app.agent.agent import Agent
from app.agent.context import RunContext
from app.agent.events import AgentEvent, StepStarted, SubagentEnded, SubagentStarted
from app.agent.models.scripted import ScriptedModel
from app.agent.prompt import ToolDefinition
from app.conversation.messages import user_message
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.families import agent, asks, results, told
from tests.agent.running import bounded, collect, context, end_of, kept, texts
from tests.services.waiting import eventually


@pytest.mark.requirement("AGT-16")
async def test_an_agent_answers_a_request_as_a_tool_and_sees_nothing_else_of_the_run() -> None:
    bank, below = agent("bank", "the bill is paid")
    desk, above = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    events = await collect(desk.run("please pay"))
    assert texts(desk.messages()) == ["please pay", "", "the bill is paid", "done"]
    assert texts(below.prompts[0].messages) == ["pay the bill"]
    assert [len(model.prompts) for model in (above, below)] == [2, 1]
    (started,) = [event for event in events if isinstance(event, SubagentStarted)]
    (ended,) = [event for event in events if isinstance(event, SubagentEnded)]
    assert (started.name, started.call_id, ended.end.reason) == ("bank", "a", EndReason.DONE)
    assert started.run_id == ended.run_id


@pytest.mark.requirement("AGT-16")
async def test_an_agent_without_a_model_answers_with_the_callers() -> None:
    bank = Agent("bank", instructions="You are the bank.")
    desk, model = agent("desk", [asks("bank")], "paid", "done", tools=[bank.as_tool()])
    await told(desk)
    assert texts(desk.messages()) == ["go", "", "paid", "done"]
    assert [prompt.system for prompt in model.prompts] == ["", "You are the bank.", ""]


async def test_the_tool_has_the_agents_name_and_description_or_those_that_it_is_given() -> None:
    bank = Agent("bank", description="Pays bills.")
    assert (bank.as_tool().name, bank.as_tool().definition.description) == ("bank", "Pays bills.")
    other = bank.as_tool(name="ask_bank", description="Ask it.")
    assert (other.name, other.definition.description) == ("ask_bank", "Ask it.")


@pytest.mark.requirement("AGT-16")
async def test_a_failure_below_is_a_failed_call_above_in_public_words() -> None:
    bank, _ = agent("bank", [ValueError("the password is swordfish")])
    desk, _ = agent("desk", [asks("bank")], "sorry", tools=[bank.as_tool()])
    events = await told(desk)
    ((words, is_error),) = results(desk.messages())
    assert is_error
    assert "bank" in words
    assert "swordfish" not in words
    assert end_of(events).reason is EndReason.DONE
    (ended,) = [event for event in events if isinstance(event, SubagentEnded)]
    assert ended.end.status is RunStatus.FAILED


async def test_an_agent_that_is_asked_nothing_is_not_run() -> None:
    bank, below = agent("bank", "what?")
    desk, _ = agent("desk", [asks("bank", " ")], "sorry", tools=[bank.as_tool()])
    await told(desk)
    assert [is_error for _, is_error in results(desk.messages())] == [True]
    assert below.prompts == []


@pytest.mark.requirement("AGT-16")
async def test_stopping_the_run_stops_the_agent_below() -> None:
    bank, below = agent("bank", ["thinking ", asyncio.Event(), "never"])
    desk, _ = agent("desk", [asks("bank")], "never", tools=[bank.as_tool()])
    run = context("go")
    events: list[AgentEvent] = []
    async for event in bounded(desk.respond(run)):
        events.append(event)
        if isinstance(event, SubagentStarted):
            await eventually(lambda: len(below.prompts) == 1)
            run.stop.request(EndReason.STOP_REQUESTED)
    (ended,) = [event for event in events if isinstance(event, SubagentEnded)]
    assert ended.end.reason is EndReason.STOP_REQUESTED
    assert end_of(events).reason is EndReason.STOP_REQUESTED
    assert below.closed == 1
    assert [is_error for _, is_error in results(kept(events))] == [True]


@pytest.mark.requirement("AGT-16", "AGT-19")
async def test_what_is_said_to_the_run_is_not_said_to_the_agent_below() -> None:
    gate = asyncio.Event()
    bank, below = agent("bank", ["pa", gate, "id"], "heard it too")
    desk, above = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    async for event in bounded(desk.run("go")):
        if isinstance(event, SubagentStarted):
            desk.steer("quickly please")
            gate.set()
    assert len(below.prompts) == 1
    assert "quickly please" in texts(above.prompts[1].messages)
    assert texts(desk.messages()) == ["go", "", "paid", "quickly please", "done"]


@pytest.mark.requirement("AGT-15", "AGT-16")
async def test_the_clients_tools_and_what_came_with_answers_stay_with_the_run_above() -> None:
    bank, below = agent("bank", "paid")
    desk, above = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    pick = ToolDefinition("pick", "Picks a colour.", {"type": "object", "properties": {}})
    run = replace(context("go"), client_tools=(pick,), held=(user_message("and be quick"),))
    assert end_of(await collect(desk.respond(run))).reason is EndReason.DONE
    assert [definition.name for definition in above.prompts[0].tools] == ["bank", "pick"]
    assert below.prompts[0].tools == ()
    assert texts(below.prompts[0].messages) == ["pay the bill"]


class Breaking(Agent):
    """Somebody's agent that does not keep to the rules: it breaks off."""

    async def respond(self, context: RunContext) -> AsyncGenerator[AgentEvent, None]:
        yield StepStarted("model")
        raise OSError("the password is swordfish")


@pytest.mark.requirement("AGT-16")
async def test_an_agent_below_that_breaks_off_is_a_failed_call_and_its_end_is_told() -> None:
    bank = Breaking("bank", model=ScriptedModel([]))
    desk, _ = agent("desk", [asks("bank")], "sorry", tools=[bank.as_tool()])
    events = await told(desk)
    ((words, is_error),) = results(desk.messages())
    assert is_error
    assert "swordfish" not in words
    (ended,) = [event for event in events if isinstance(event, SubagentEnded)]
    assert ended.end.reason is EndReason.INTERNAL_ERROR


@pytest.mark.requirement("AGT-16")
async def test_who_leaves_the_run_stops_the_agent_below() -> None:
    bank, below = agent("bank", ["thinking ", asyncio.Event(), "never"])
    desk, _ = agent("desk", [asks("bank")], "never", tools=[bank.as_tool()])
    async with aclosing(desk.run("go")) as events:
        async for event in bounded(events):
            if isinstance(event, SubagentStarted):
                await eventually(lambda: len(below.prompts) == 1)
                break
    await eventually(lambda: below.closed == 1)
