"""Messages that come while a run is under way."""

from collections.abc import Sequence

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent, Appended, ToolDone
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.prompt import Prompt
from app.agent.steering import NOTICE
from app.conversation.entries import MessageEntry
from app.errors import Conflict
from tests.agent.running import QUICK, bounded, end_of, texts

LOOK = CallPiece("c", "{}", name="look", call_id="c")


def steered(replies: Sequence[str | list[CallPiece]], *, notice: bool = True) -> tuple[Agent, ScriptedModel]:
    """An agent whose tool is interrupted by a person each time it runs."""
    model = ScriptedModel(replies)
    said = iter(["wait", "and hurry"])

    def look() -> str:
        agent.steer(next(said))
        return "seen"

    agent = Agent("bot", model=model, tools=[look], limits=QUICK, steering_notice=notice)
    return agent, model


async def told(agent: Agent, text: str = "go") -> list[AgentEvent]:
    return [event async for event in bounded(agent.run(text))]


def shown(prompt: Prompt) -> list[str]:
    return texts(prompt.messages)


@pytest.mark.requirement("AGT-19")
async def test_a_message_for_a_run_is_read_behind_the_results_with_a_note_for_all_later_calls() -> None:
    agent, model = steered([[LOOK], [LOOK], "done"])
    events = await told(agent)
    assert [shown(prompt) for prompt in model.prompts] == [
        ["go"],
        ["go", "", "seen", "wait", NOTICE],
        ["go", "", "seen", "wait", NOTICE, "", "seen", "and hurry", NOTICE],
    ]
    at = [type(event) for event in events]
    assert at.index(Appended) > at.index(ToolDone)
    entries = [event.entry for event in events if isinstance(event, Appended)]
    assert [entry.message.join_text() for entry in entries if isinstance(entry, MessageEntry)] == [
        "wait",
        "and hurry",
    ]


@pytest.mark.requirement("AGT-19")
async def test_the_note_is_not_kept_and_not_in_the_next_run() -> None:
    agent, model = steered([[LOOK], "done", "again"])
    await told(agent)
    await told(agent, "next")
    assert NOTICE not in texts(agent.messages())
    assert shown(model.prompts[2]) == ["go", "", "seen", "wait", "done", "next"]


@pytest.mark.requirement("AGT-19")
async def test_an_agent_may_do_without_the_note() -> None:
    agent, model = steered([[LOOK], "done"], notice=False)
    await told(agent)
    assert shown(model.prompts[1]) == ["go", "", "seen", "wait"]


async def test_a_message_that_comes_in_the_last_call_makes_the_run_go_on() -> None:
    model = ScriptedModel(["one", "two"])
    agent = Agent("bot", model=model, limits=QUICK)
    events: list[AgentEvent] = []
    async for event in bounded(agent.run("go")):
        if not events:
            agent.steer("one more thing")
        events.append(event)
    assert [shown(prompt) for prompt in model.prompts] == [["go"], ["go", "one", "one more thing", NOTICE]]
    assert texts(agent.messages()) == ["go", "one", "one more thing", "two"]
    assert end_of(events).reason.value == "done"


async def test_nobody_can_steer_an_agent_that_does_nothing() -> None:
    with pytest.raises(Conflict, match="not answering"):
        Agent("bot", model=ScriptedModel([])).steer("hello")
