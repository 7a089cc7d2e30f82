"""What agents that are tools ask of people, with no server."""

import asyncio

import pytest

from app.agent.agent import Agent
from app.agent.events import SubagentEnded
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tool_context import ToolContext
from app.agent.tools import tool
from app.conversation.interrupts import Answer
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.families import agent, asks, calls, paying, results, resumed, told
from tests.agent.running import QUICK, bounded, end_of, texts


@pytest.mark.requirement("AGT-16")
async def test_a_question_below_is_asked_above_and_the_answer_goes_on_where_the_agent_paused() -> None:
    log: list[str] = []
    bank, below = agent("bank", [calls("pay")], "the bill is paid", tools=[paying(log)])
    desk, above = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    events = await told(desk)
    end = end_of(events)
    (question,) = end.interrupts
    assert (end.status, question.call_id, question.reason) == (RunStatus.PAUSED, "a", "tool_call")
    (ended,) = [event for event in events if isinstance(event, SubagentEnded)]
    assert [interrupt.id for interrupt in ended.end.interrupts] == [question.id]
    assert log == []
    assert end_of(await resumed(desk, [question])).reason is EndReason.DONE
    assert log == ["paid"]
    assert texts(below.prompts[1].messages) == ["pay the bill", "", "paid"]
    assert texts(desk.messages()) == ["go", "", "the bill is paid", "done"]
    assert [len(model.prompts) for model in (above, below)] == [2, 2]


@pytest.mark.requirement("AGT-16")
async def test_a_refusal_reaches_the_agent_below_which_goes_on_with_it() -> None:
    log: list[str] = []
    bank, below = agent("bank", [calls("pay")], "not paid", tools=[paying(log)])
    desk, _ = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    await resumed(desk, end_of(await told(desk)).interrupts, approved=False)
    assert log == []
    assert [is_error for _, is_error in results(below.prompts[1].messages)] == [True]
    assert results(desk.messages()) == [("not paid", False)]


@pytest.mark.requirement("AGT-16")
async def test_a_question_that_is_closed_above_is_closed_below() -> None:
    log: list[str] = []
    bank, below = agent("bank", [calls("pay")], "never mind", tools=[paying(log)])
    desk, _ = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    (question,) = end_of(await told(desk)).interrupts
    async for _ in bounded(desk.resume([Answer(question.id, cancelled=True)])):
        pass
    assert (log, len(below.prompts)) == ([], 2)
    assert results(desk.messages()) == [("never mind", False)]


@pytest.mark.requirement("AGT-16")
async def test_all_questions_of_one_answer_below_are_asked_at_once_and_later_ones_again() -> None:
    log: list[str] = []
    both: Reply = [calls("pay", "c1"), calls("pay", "c2")]
    bank, below = agent("bank", both, [calls("pay", "c3")], "all paid", tools=[paying(log)])
    desk, above = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    first = end_of(await told(desk)).interrupts
    assert [question.call_id for question in first] == ["a", "a"]
    second = end_of(await resumed(desk, first)).interrupts
    assert (len(second), log) == (1, ["paid", "paid"])
    assert end_of(await resumed(desk, second)).reason is EndReason.DONE
    assert log == ["paid"] * 3
    assert results(desk.messages()) == [("all paid", False)]
    assert [len(model.prompts) for model in (above, below)] == [2, 3]


@pytest.mark.requirement("AGT-16")
async def test_two_agents_asked_side_by_side_pause_and_go_on_each_by_itself() -> None:
    log: list[str] = []
    bank, _ = agent("bank", [calls("pay", "c1")], "bank paid", tools=[paying(log)])
    shop, _ = agent("shop", [calls("pay", "c2")], "shop paid", tools=[paying(log)])
    both: Reply = [asks("bank", id="a"), asks("shop", id="b")]
    desk, _ = agent("desk", both, "done", tools=[bank.as_tool(), shop.as_tool()])
    questions = end_of(await told(desk)).interrupts
    assert [question.call_id for question in questions] == ["a", "b"]
    (left,) = end_of(await resumed(desk, questions[1:])).interrupts
    assert (left.id, log) == (questions[0].id, ["paid"])
    await resumed(desk, [left])
    assert log == ["paid", "paid"]
    assert sorted(results(desk.messages())) == [("bank paid", False), ("shop paid", False)]


@pytest.mark.requirement("AGT-16")
async def test_a_question_of_an_agent_below_an_agent_below_is_asked_at_the_top() -> None:
    log: list[str] = []
    bank, below = agent("bank", [calls("pay")], "the bill is paid", tools=[paying(log)])
    middle_tools = [bank.as_tool()]
    desk, middle = agent("desk", [asks("bank", id="m")], "all done", tools=middle_tools)
    boss, above = agent("boss", [asks("desk")], "good", tools=[desk.as_tool()])
    (question,) = end_of(await told(boss)).interrupts
    assert (question.call_id, log) == ("a", [])
    await resumed(boss, [question])
    assert log == ["paid"]
    assert texts(boss.messages()) == ["go", "", "all done", "good"]
    assert [len(model.prompts) for model in (above, middle, below)] == [2, 2, 2]


@pytest.mark.requirement("AGT-16")
async def test_a_tool_asks_several_agents_and_none_that_answered_is_asked_again() -> None:
    log: list[str] = []
    bank, bank_model = agent("bank", [calls("pay")], "paid", tools=[paying(log)])
    post, post_model = agent("post", "posted")
    shop, shop_model = agent("shop", "bought")

    async def errands(context: ToolContext) -> str:
        asked = (context.run_agent(post, "a letter"), context.run_agent(bank, "a bill"))
        answers = await asyncio.gather(*asked, context.run_agent(shop, "bread"))
        return ", ".join(answers)

    desk, _ = agent("desk", [calls("errands")], "done", tools=[errands])
    (question,) = end_of(await told(desk)).interrupts
    assert len(shop_model.prompts) == 0
    await resumed(desk, [question])
    assert results(desk.messages()) == [("posted, paid, bought", False)]
    assert [len(model.prompts) for model in (post_model, bank_model, shop_model)] == [1, 2, 1]


@pytest.mark.requirement("AGT-16")
async def test_a_tool_that_itself_needs_approval_and_asks_an_agent_that_does_is_approved_once() -> None:
    log: list[str] = []
    bank, _ = agent("bank", [calls("pay")], "paid", tools=[paying(log)])

    @tool(approval=True)
    async def settle(context: ToolContext) -> str:
        return await context.run_agent(bank, "pay")

    desk, _ = agent("desk", [calls("settle")], "done", tools=[settle])
    first = end_of(await told(desk)).interrupts
    second = end_of(await resumed(desk, first)).interrupts
    assert [(len(first), first[0].child is None), (len(second), second[0].child is None)] == [
        (1, True),
        (1, False),
    ]
    assert end_of(await resumed(desk, second)).reason is EndReason.DONE
    assert log == ["paid"]


@pytest.mark.requirement("AGT-16")
async def test_a_question_of_an_agent_that_was_handed_over_to_below_is_taken_up_there() -> None:
    log: list[str] = []
    clerk, clerk_model = agent("clerk", [calls("pay")], "paid by the clerk", tools=[paying(log)])
    model = ScriptedModel([[calls("transfer_to_clerk", "h")]])
    bank = Agent("bank", model=model, handoffs=[clerk], limits=QUICK)
    desk, _ = agent("desk", [asks("bank")], "done", tools=[bank.as_tool()])
    await resumed(desk, end_of(await told(desk)).interrupts)
    assert results(desk.messages()) == [("paid by the clerk", False)]
    assert (log, len(model.prompts), len(clerk_model.prompts)) == (["paid"], 1, 2)
