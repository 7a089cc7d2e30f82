"""Agents that hand a conversation over to each other."""

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import tool
from app.conversation.interrupts import Answer
from app.conversation.messages import Role
from tests.agent.running import QUICK, bounded, end_of, texts


def to(name: str, id: str = "h") -> CallPiece:
    return CallPiece(id, "{}", name=f"transfer_to_{name}", call_id=id)


async def told(agent: Agent, text: str = "go") -> list[AgentEvent]:
    return [event async for event in bounded(agent.run(text))]


def speakers(agent: Agent) -> list[str | None]:
    return [message.sender_id for message in agent.messages() if message.role is Role.ASSISTANT]


async def test_the_other_agent_goes_on_inside_the_run_with_its_own_instructions() -> None:
    first, second = ScriptedModel([[to("doctor")], "desk again"]), ScriptedModel(["take a rest"])
    doctor = Agent("doctor", model=second, instructions="Heal.", description="Knows illnesses.")
    desk = Agent("desk", model=first, handoffs=[doctor], limits=QUICK)
    await told(desk)
    assert speakers(desk) == ["desk", "doctor"]
    assert second.prompts[0].system == "Heal."
    assert texts(second.prompts[0].messages)[0] == "go"
    (offered,) = first.prompts[0].tools
    assert offered.name == "transfer_to_doctor"
    assert "Knows illnesses." in offered.description
    await told(desk, "and now?")
    assert speakers(desk)[-1] == "desk"


async def test_a_sticky_agent_leaves_the_next_run_to_who_answered_last_until_that_one_hands_back() -> None:
    first = ScriptedModel([[to("doctor")], "desk is back", "still desk"])
    second = ScriptedModel(["rest", "rest more", [to("desk")]])
    doctor = Agent("doctor", model=second, handoffs=lambda: [desk])
    desk = Agent("desk", model=first, handoffs=[doctor], sticky=True, limits=QUICK)
    await told(desk)
    await told(desk, "still ill")
    await told(desk, "well again")
    await told(desk, "thanks")
    assert speakers(desk) == ["desk", "doctor", "doctor", "doctor", "desk", "desk"]


async def test_of_two_handovers_in_one_answer_the_first_counts() -> None:
    doctor = Agent("doctor", model=ScriptedModel(["rest"]))
    cook = Agent("cook", model=ScriptedModel(["eat"]))
    model = ScriptedModel([[to("doctor", "a"), to("cook", "b")]])
    desk = Agent("desk", model=model, handoffs=[doctor, cook], limits=QUICK)
    await told(desk)
    assert speakers(desk) == ["desk", "doctor"]
    errors = [message.is_error for message in desk.messages() if message.role is Role.TOOL_RESULT]
    assert errors == [False, True]


async def test_a_question_of_the_second_agent_is_taken_up_by_that_one() -> None:
    log: list[str] = []

    @tool(approval=True)
    def cut() -> str:
        log.append("cut")
        return "cut"

    first = ScriptedModel([[to("doctor")]])
    second = ScriptedModel([[CallPiece("c", "{}", name="cut", call_id="c")], "sewn"])
    doctor = Agent("doctor", model=second, tools=[cut])
    desk = Agent("desk", model=first, handoffs=[doctor], limits=QUICK)
    (question,) = end_of(await told(desk)).interrupts
    answer = Answer(question.id, payload={"approved": True})
    events = [event async for event in bounded(desk.resume([answer]))]
    assert end_of(events).reason.value == "done"
    assert (log, speakers(desk)) == (["cut"], ["desk", "doctor", "doctor"])
    assert (len(first.prompts), len(second.prompts)) == (1, 2)


async def test_a_handover_beside_a_question_counts_when_the_question_is_answered() -> None:
    @tool(approval=True)
    def pay() -> str:
        return "paid"

    first = ScriptedModel([[CallPiece("c", "{}", name="pay", call_id="c"), to("doctor")]])
    doctor = Agent("doctor", model=ScriptedModel(["rest"]))
    desk = Agent("desk", model=first, handoffs=[doctor], tools=[pay], limits=QUICK)
    (question,) = end_of(await told(desk)).interrupts
    async for _ in desk.resume([Answer(question.id, payload={"approved": True})]):
        pass
    assert speakers(desk) == ["desk", "doctor"]


async def test_an_agent_without_a_model_answers_with_that_of_the_one_who_hands_over() -> None:
    model = ScriptedModel([[to("doctor")], "rest"])
    desk = Agent("desk", model=model, handoffs=[Agent("doctor")], limits=QUICK)
    await told(desk)
    assert speakers(desk) == ["desk", "doctor"]


@pytest.mark.requirement("AGT-16")
async def test_an_agent_is_a_tool_of_another_and_its_question_is_asked_and_answered_above() -> None:
    log: list[str] = []

    @tool(approval=True)
    def pay() -> str:
        log.append("paid")
        return "paid"

    below = ScriptedModel([[CallPiece("c", "{}", name="pay", call_id="c")], "the bill is paid"])
    middle = ScriptedModel([[CallPiece("m", '{"request": "pay it"}', name="bank", call_id="m")], "all done"])
    above = ScriptedModel([[CallPiece("a", '{"request": "see to it"}', name="desk", call_id="a")], "good"])
    bank = Agent("bank", model=below, tools=[pay], limits=QUICK)
    desk = Agent("desk", model=middle, tools=[bank.as_tool()], limits=QUICK)
    boss = Agent("boss", model=above, tools=[desk.as_tool()], limits=QUICK)
    (question,) = end_of(await told(boss)).interrupts
    assert (question.call_id, question.reason, log) == ("a", "tool_call", [])
    async for _ in boss.resume([Answer(question.id, payload={"approved": True})]):
        pass
    assert log == ["paid"]
    assert texts(boss.messages()) == ["go", "", "all done", "good"]
    assert [len(model.prompts) for model in (below, middle, above)] == [2, 2, 2]
