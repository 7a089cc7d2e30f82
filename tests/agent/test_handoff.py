"""Agents that hand a conversation over to each other."""

from dataclasses import replace

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent
from app.agent.limits import Limits
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.prompt import ToolDefinition
from app.agent.tools import tool
from app.conversation.blocks import Text
from app.conversation.interrupts import Answer
from app.conversation.messages import Role, assistant_message
from app.conversation.outcomes import EndReason
from tests.agent.running import QUICK, bounded, collect, context, end_of, kept, texts


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


async def test_agents_hand_over_in_a_circle_inside_one_run() -> None:
    first = ScriptedModel([[to("doctor", "h1")], "goodbye"])
    second = ScriptedModel([[to("desk", "h2")]])
    doctor = Agent("doctor", model=second, handoffs=lambda: [desk], limits=QUICK)
    desk = Agent("desk", model=first, handoffs=lambda: [doctor], limits=QUICK)
    assert end_of(await told(desk)).reason is EndReason.DONE
    assert speakers(desk) == ["desk", "doctor", "desk"]
    results = [message for message in desk.messages() if message.role is Role.TOOL_RESULT]
    assert [(message.call_id, message.sender_id) for message in results] == [("h1", "desk"), ("h2", "doctor")]


async def test_agents_that_only_hand_over_reach_the_limit_of_turns() -> None:
    limits = Limits(turns=4, retry_seconds=0, grace_seconds=0.05)
    first = ScriptedModel([[to("doctor", f"a{number}")] for number in range(9)])
    second = ScriptedModel([[to("desk", f"b{number}")] for number in range(9)])
    doctor = Agent("doctor", model=second, handoffs=lambda: [desk])
    desk = Agent("desk", model=first, handoffs=lambda: [doctor], limits=limits)
    assert end_of(await told(desk)).reason is EndReason.LOOP_LIMIT
    assert speakers(desk) == ["desk", "doctor", "desk", "doctor"]


async def test_a_handover_to_nobody_is_a_failed_call_of_the_one_who_stays() -> None:
    doctor = Agent("doctor", model=ScriptedModel(["never"]))
    model = ScriptedModel([[to("plumber")], "no plumber here"])
    desk = Agent("desk", model=model, handoffs=[doctor], limits=QUICK)
    await told(desk)
    assert speakers(desk) == ["desk", "desk"]
    assert [m.is_error for m in desk.messages() if m.role is Role.TOOL_RESULT] == [True]


async def test_a_history_of_an_agent_that_is_not_there_any_more_goes_on_with_the_first() -> None:
    gone = assistant_message([Text(text="I was the cook")], sender_id="cook")
    doctor = Agent("doctor", model=ScriptedModel(["never"]))
    model = ScriptedModel(["desk here"])
    desk = Agent("desk", model=model, handoffs=[doctor], sticky=True, history=[gone], limits=QUICK)
    await told(desk)
    assert speakers(desk) == ["cook", "desk"]


async def test_the_second_agent_uses_its_own_tools_and_not_those_of_the_first() -> None:
    def heal() -> str:
        return "healed"

    def sell() -> str:
        return "sold"

    first = ScriptedModel([[to("doctor")]])
    second = ScriptedModel(
        [
            [
                CallPiece("0", "{}", name="heal", call_id="c1"),
                CallPiece("1", "{}", name="sell", call_id="c2"),
            ],
            "well",
        ]
    )
    doctor = Agent("doctor", model=second, tools=[heal])
    desk = Agent("desk", model=first, tools=[sell], handoffs=[doctor], limits=QUICK)
    await told(desk)
    assert [definition.name for definition in second.prompts[0].tools] == ["heal"]
    errors = {m.call_id: m.is_error for m in desk.messages() if m.role is Role.TOOL_RESULT}
    assert errors == {"h": False, "c1": False, "c2": True}


@pytest.mark.requirement("AGT-15")
async def test_a_tool_of_the_clients_with_the_name_of_a_handover_does_not_take_its_place() -> None:
    doctor = Agent("doctor", model=ScriptedModel(["rest"]))
    desk = Agent("desk", model=ScriptedModel([[to("doctor")]]), handoffs=[doctor], limits=QUICK)
    mine = ToolDefinition("transfer_to_doctor", "Mine.", {"type": "object", "properties": {}})
    events = await collect(desk.respond(replace(context("go"), client_tools=(mine,))))
    assert end_of(events).reason is EndReason.DONE
    assert texts(kept(events))[-1] == "rest"


def test_two_tools_that_hand_over_may_not_have_one_name() -> None:
    def transfer_to_doctor() -> str:
        return "?"

    twins = [Agent("a doctor"), Agent("a_doctor")]
    with pytest.raises(ValueError, match="transfer_to_a_doctor"):
        Agent("desk", handoffs=twins)
    with pytest.raises(ValueError, match="transfer_to_doctor"):
        Agent("desk", tools=[transfer_to_doctor], handoffs=[Agent("doctor")])


async def test_two_tools_of_one_name_that_are_found_late_fail_the_run() -> None:
    twins = [Agent("a doctor"), Agent("a_doctor")]
    desk = Agent("desk", model=ScriptedModel(["never"]), handoffs=lambda: twins, limits=QUICK)
    assert end_of(await told(desk)).reason is EndReason.INTERNAL_ERROR
