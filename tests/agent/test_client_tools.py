"""Tools that the client runs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent, ToolDone
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.prompt import ToolDefinition
from app.agent.tools import tool
from app.conversation.interrupts import Answer
from app.conversation.messages import Message, tool_result_message
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.running import QUICK, bounded, context, end_of, kept, texts

PICK = ToolDefinition("pick", "Picks a colour.", {"type": "object", "properties": {}})


def call(name: str, id: str) -> CallPiece:
    return CallPiece(id, "{}", name=name, call_id=id)


def look() -> str:
    return "seen"


async def ran(
    agent: Agent, *history: Message | str, tools: Sequence[ToolDefinition] = (PICK,)
) -> list[AgentEvent]:
    run = replace(context(*history), client_tools=tools)
    return [event async for event in bounded(agent.respond(run))]


@pytest.mark.requirement("AGT-15")
async def test_a_call_of_the_clients_ends_the_run_and_the_others_have_their_results() -> None:
    model = ScriptedModel([[call("pick", "p"), call("look", "l")]])
    events = await ran(Agent("bot", model=model, tools=[look], limits=QUICK), "go")
    end = end_of(events)
    assert (end.reason, end.status, end.pending_calls) == (
        EndReason.CLIENT_TOOLS,
        RunStatus.COMPLETED,
        ("p",),
    )
    assert [event.message.call_id for event in events if isinstance(event, ToolDone)] == ["l"]
    assert [tool.name for tool in model.prompts[0].tools] == ["look", "pick"]


@pytest.mark.requirement("AGT-15")
async def test_the_loop_goes_on_when_the_client_has_answered() -> None:
    model = ScriptedModel([[call("pick", "p")], "blue then"])
    agent = Agent("bot", model=model, limits=QUICK)
    said = kept(await ran(agent, "go"))
    events = await ran(agent, "go", *said, tool_result_message("p", "pick", "blue"))
    assert texts(kept(events)) == ["blue then"]
    assert texts(model.prompts[1].messages) == ["go", "", "blue"]


@pytest.mark.requirement("AGT-15")
async def test_answers_to_some_of_the_calls_make_no_model_call() -> None:
    model = ScriptedModel([[call("pick", "p"), call("pick", "q")]])
    agent = Agent("bot", model=model, limits=QUICK)
    said = kept(await ran(agent, "go"))
    events = await ran(agent, "go", *said, tool_result_message("p", "pick", "blue"))
    assert (end_of(events).reason, end_of(events).pending_calls) == (EndReason.CLIENT_TOOLS, ("q",))
    assert len(model.prompts) == 1


@pytest.mark.requirement("AGT-14", "AGT-15")
async def test_a_run_waits_for_a_person_first_and_then_for_the_client() -> None:
    @tool(approval=True)
    def pay() -> str:
        return "paid"

    model = ScriptedModel([[call("pick", "p"), call("pay", "y")]])
    agent = Agent("bot", model=model, tools=[pay], limits=QUICK)
    asked = await ran(agent, "go")
    (question,) = end_of(asked).interrupts
    assert (end_of(asked).reason, question.call_id) == (EndReason.INTERRUPTED, "y")
    run = replace(
        context("go", *kept(asked)),
        client_tools=(PICK,),
        interrupts=[question],
        answers={question.id: Answer(question.id, payload={"approved": True})},
    )
    events = [event async for event in bounded(agent.respond(run))]
    assert texts(kept(events)) == ["paid"]
    assert (end_of(events).reason, end_of(events).pending_calls) == (EndReason.CLIENT_TOOLS, ("p",))
    assert len(model.prompts) == 1


async def test_of_two_tools_with_one_name_the_agents_own_is_offered_and_run() -> None:
    model = ScriptedModel([[call("look", "l")], "end"])
    client = ToolDefinition("look", "The client's.", {"type": "object", "properties": {}})
    events = await ran(Agent("bot", model=model, tools=[look], limits=QUICK), "go", tools=[client])
    assert texts(kept(events)) == ["", "seen", "end"]
    assert [tool.description for tool in model.prompts[0].tools] == [""]
