"""Hooks around a tool: they let it run, answer in its place, change its result, or end the run."""

import asyncio
from typing import Any, cast

import pytest
from pydantic import JsonValue

from app.agent.agent import Agent
from app.agent.hooks import AfterTool, BeforeTool, Instead
from app.agent.models.scripted import ScriptedModel
from app.agent.tool_context import ToolContext
from app.agent.tools import ToolError, tool
from app.conversation.blocks import Reminder, Text
from app.conversation.interrupts import Answer
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.hooked import Log, call, listed, pay_into, paying, results
from tests.agent.running import answer, collect, end_of, texts


async def test_hooks_stand_around_the_tool_and_are_told_of_the_call() -> None:
    log: Log = []
    seen: list[BeforeTool | AfterTool] = []

    def before(given: BeforeTool) -> None:
        log.append("before")
        seen.append(given)

    async def after(given: AfterTool) -> None:
        log.append("after")
        seen.append(given)

    told = await answer(paying(log, before_tool=before, after_tool=after), "go")
    assert log == ["before", "paid 5", "after"]
    assert texts(results(told)) == ["paid 5"]
    for given in seen:
        assert (given.call_id, given.name, given.arguments) == ("c", "pay", {"amount": 5})
        assert (given.agent, given.run_id, given.turn, given.state) == ("bot", "run-1", 1, {"page": 3})
    last = seen[-1]
    assert isinstance(last, AfterTool)
    assert (last.content, last.is_error, last.answered) == ((Text(text="paid 5"),), False, False)


async def test_a_refused_call_is_not_executed_and_the_refusal_is_what_the_model_reads() -> None:
    log: Log = []

    def refuse(given: BeforeTool) -> Instead | None:
        too_much = given.arguments["amount"] == 5
        return Instead("That is too much.", is_error=True) if too_much else None

    agent = paying(log, before_tool=refuse)
    told = await collect(agent.run("go"))
    assert log == []
    (result,) = results(told)
    assert (result.join_text(), result.is_error, result.call_id) == ("That is too much.", True, "c")
    assert (result.sender_id, result.tool_name) == ("bot", "pay")
    model = cast(ScriptedModel, agent.model)
    assert texts(model.prompts[1].messages)[-1] == "That is too much."
    assert end_of(told).reason is EndReason.DONE


async def test_the_first_answer_counts_and_the_hooks_behind_the_tool_see_it() -> None:
    log: Log = []
    seen: list[AfterTool] = []

    def never(_: BeforeTool) -> None:
        log.append("asked although another answered")

    def nothing(_: BeforeTool) -> None:
        return None

    def cached(_: BeforeTool) -> Instead:
        return Instead({"cached": [1]})

    hooks = [nothing, cached, never]
    told = await answer(paying(log, before_tool=hooks, after_tool=seen.append), "go")
    assert log == []
    assert texts(results(told)) == ['{"cached":[1]}']
    assert [(after.answered, after.is_error) for after in seen] == [(True, False)]
    assert seen[0].content == (Text(text='{"cached":[1]}'),)


@pytest.mark.parametrize("nothing", [Instead(), Instead("")])
async def test_an_answer_with_nothing_in_it_is_an_empty_result(nothing: Instead) -> None:
    log: Log = []

    def silent(_: BeforeTool) -> Instead:
        return nothing

    told = await answer(paying(log, before_tool=silent), "go")
    (result,) = results(told)
    assert (result.call_id, result.content, log) == ("c", (), [])


async def test_each_hook_behind_a_tool_may_replace_its_result_before_anybody_sees_it() -> None:
    seen: list[AfterTool] = []

    def first(given: AfterTool) -> Instead:
        seen.append(given)
        return Instead([Text(text="card ****"), Reminder(text="masked", origin="mask")])

    def second(given: AfterTool) -> Instead:
        seen.append(given)
        return Instead("nothing to see\x00", is_error=True)

    agent = paying([], after_tool=[first, second])
    told = await collect(agent.run("go"))
    assert [given.content[0] for given in seen] == [Text(text="paid 5"), Text(text="card ****")]
    assert [given.answered for given in seen] == [False, False]
    (result,) = results(told)
    assert (result.join_text(), result.is_error) == ("nothing to see\ufffd", True)
    assert "paid 5" not in "".join(message.to_json() for message in agent.messages())


async def test_a_tools_own_error_goes_to_the_hooks_and_the_model_and_ends_nothing() -> None:
    seen: list[AfterTool] = []

    def fail() -> str:
        raise ToolError("out of order")

    model = ScriptedModel([[call("fail", "c")], "end"])
    told = await answer(Agent("bot", model=model, tools=[fail], after_tool=seen.append), "go")
    assert [given.is_error for given in seen] == [True]
    assert "out of order" in texts(results(told))[0]
    assert end_of(told).reason is EndReason.DONE


async def test_of_a_call_that_no_tool_can_take_no_hook_is_asked() -> None:
    log: Log = []
    model = ScriptedModel([[call("pay", "c", "{"), call("gone", "d"), call("pay", "e", "{}")], "end"])
    agent = Agent("bot", model=model, tools=[pay_into(log)], before_tool=lambda g: log.append(g.call_id))
    told = await answer(agent, "go")
    assert [result.is_error for result in results(told)] == [True, True, True]
    assert log == []


async def test_what_hooks_do_to_what_they_are_given_or_gave_changes_nothing() -> None:
    mine = Text(text="x", metadata={"n": 1})

    def tag(tags: list[str]) -> str:
        return ",".join(tags)

    def spoil(given: BeforeTool) -> None:
        cast(list[str], given.arguments["tags"]).append("forged")
        cast(dict[str, Any], given.state)["page"] = 99

    def look_again(given: BeforeTool) -> None:
        assert (given.arguments, given.state) == ({"tags": ["a"]}, {"page": 3})

    def replace(given: AfterTool) -> Instead:
        assert given.content == (Text(text="a"),)
        return Instead([mine])

    def spoil_result(given: AfterTool) -> None:
        cast(dict[str, Any], cast(Text, given.content[0]).metadata)["n"] = 99
        cast(dict[str, Any], mine.metadata)["n"] = 77

    model = ScriptedModel([[call("tag", "c", '{"tags": ["a"]}')], "end"])
    agent = Agent(
        "bot",
        model=model,
        tools=[tag],
        before_tool=[spoil, look_again],
        after_tool=[replace, spoil_result],
    )
    told = await answer(agent, "go")
    assert end_of(told).reason is EndReason.DONE
    assert results(told)[0].content == (Text(text="x", metadata={"n": 1}),)


async def test_a_call_that_waits_for_a_person_is_not_shown_behind_the_tool() -> None:
    log: Log = []

    def book(context: ToolContext) -> str:
        return f"booked {context.ask('When?')}"

    model = ScriptedModel([[call("book", "c")], "end"])
    agent = Agent(
        "bot",
        model=model,
        tools=[book],
        before_tool=lambda _: log.append("before"),
        after_tool=lambda _: log.append("after"),
    )
    paused = end_of(await listed(agent.run("go")))
    assert paused.status is RunStatus.PAUSED
    assert log == ["before"]
    (interrupt,) = paused.interrupts
    answers = [Answer(interrupt_id=interrupt.id, payload="noon")]
    told = await listed(agent.resume(answers))
    assert log == ["before", "before", "after"]
    assert texts(results(told)) == ["booked noon"]


async def test_a_hook_is_asked_of_an_approved_call_alone_and_with_the_edited_arguments() -> None:
    log: Log = []
    seen: list[dict[str, Any]] = []
    gated = tool(approval=True)(pay_into(log))
    model = ScriptedModel([[call("pay", "c", '{"amount": 5}')], "end"])
    agent = Agent("bot", model=model, tools=[gated], before_tool=lambda g: seen.append(g.arguments))
    paused = end_of(await listed(agent.run("go")))
    assert seen == []
    payload: dict[str, JsonValue] = {"approved": True, "editedArgs": {"amount": 3}}
    answers = [Answer(interrupt_id=paused.interrupts[0].id, payload=payload)]
    await listed(agent.resume(answers))
    assert (seen, log) == ([{"amount": 3}], ["paid 3"])


async def test_a_hook_has_its_own_time_beside_that_of_the_tool() -> None:
    async def slow(_: BeforeTool) -> None:
        await asyncio.sleep(0.05)

    model = ScriptedModel([[call("quick", "c")], "end"])

    async def quick() -> str:
        return "done"

    tools = [tool(timeout=0.03)(quick)]
    told = await answer(Agent("bot", model=model, tools=tools, before_tool=slow), "go")
    assert texts(results(told)) == ["done"]
