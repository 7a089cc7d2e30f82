"""An agent used alone: its history, the order of things, the times."""

import asyncio
import logging

import pytest

from app.agent.agent import Agent
from app.agent.events import MessageDone, StepEnded, StepStarted, ToolDone
from app.agent.models.base import CallPiece, Finished, ServerCall, TextPiece, ThinkingPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolContext, tool
from app.conversation.blocks import Text, Thinking, ToolCall
from app.conversation.messages import Message, Role, StopReason, Usage, assistant_message, user_message
from app.conversation.outcomes import EndReason, RunEnd
from app.errors import Conflict
from tests.agent.running import QUICK, StepClock, answer, bounded, collect, context, end_of, kept, texts


def weather(city: str) -> str:
    return f"sunny in {city}"


WEATHER = [CallPiece("0", '{"city":"Basel"}', name="weather", call_id="call-1")]


@pytest.mark.requirement("AGT-01")
async def test_history_is_a_list_of_messages_and_the_model_is_given_those_very_messages() -> None:
    earlier = [user_message("hello"), assistant_message("good day")]
    model = ScriptedModel(["fine"])
    agent = Agent("bot", model=model, history=earlier, instructions="Be kind.")
    asked = user_message("how are you?")
    await agent.ask(asked)
    (prompt,) = model.prompts
    assert prompt.system == "Be kind."
    assert all(isinstance(message, Message) for message in agent.messages())
    assert [*prompt.messages] == [*earlier, asked] == agent.messages()[:3]


@pytest.mark.requirement("AGT-02")
async def test_the_history_given_is_copied_and_the_one_read_is_a_copy() -> None:
    given = [user_message("hello")]
    agent = Agent("bot", model=ScriptedModel(["hi", "yes"]), history=given)
    given.clear()
    assert texts(agent.messages()) == ["hello"]
    taken = agent.messages()
    taken.append(user_message("not said"))
    await agent.ask("are you there?")
    assert texts(agent.messages()) == ["hello", "are you there?", "hi"]
    assert texts(taken) == ["hello", "not said"]


@pytest.mark.requirement("AGT-02")
async def test_a_copy_read_during_a_run_does_not_grow() -> None:
    agent = Agent("bot", model=ScriptedModel([WEATHER, "done"]), tools=[weather])
    seen: list[list[Message]] = []
    lengths: list[int] = []
    async for event in bounded(agent.run("weather?")):
        if isinstance(event, MessageDone | ToolDone):
            seen.append(agent.messages())
            lengths.append(len(seen[-1]))
            assert seen[-1][-1] == event.message
    assert [len(copy) for copy in seen] == lengths == [2, 3, 4]


@pytest.mark.requirement("AGT-03")
async def test_a_run_appends_its_input_then_messages_and_results_in_the_order_made() -> None:
    agent = Agent("bot", model=ScriptedModel([["Let me look.", *WEATHER], "It is sunny."]), tools=[weather])
    told = await collect(agent.run([user_message("hello"), user_message("weather?")]))
    history = agent.messages()
    assert [message.role.value for message in history] == [
        "user", "user", "assistant", "tool_result", "assistant",
    ]  # fmt: skip
    assert texts(history) == ["hello", "weather?", "Let me look.", "sunny in Basel", "It is sunny."]
    assert history[2:] == kept(told)
    assert [event.name for event in told if isinstance(event, StepStarted)] == ["model", "tools", "model"]
    assert [event.name for event in told if isinstance(event, StepEnded)] == ["model", "tools", "model"]


async def test_the_next_run_builds_on_all_that_came_before() -> None:
    model = ScriptedModel([WEATHER, "It is sunny.", "You asked for the weather."])
    agent = Agent("bot", model=model, tools=[weather])
    await agent.ask("weather?")
    final = await agent.ask("what did I ask?")
    assert final is not None
    assert final.join_text() == "You asked for the weather."
    assert [*model.prompts[-1].messages] == agent.messages()[:-1]


async def test_a_server_run_keeps_nothing_in_the_agent() -> None:
    agent = Agent("bot", model=ScriptedModel(["one", "two"]))
    assert texts(kept(await answer(agent, "a"))) == ["one"]
    assert texts(kept(await answer(agent, "b"))) == ["two"]
    assert agent.messages() == []


async def test_two_runs_at_once_over_one_history_are_refused() -> None:
    agent = Agent("bot", model=ScriptedModel(["a", "b"]))
    async for event in bounded(agent.run("one")):
        if isinstance(event, MessageDone):
            with pytest.raises(Conflict):
                await agent.ask("two")
    await agent.ask("three")
    assert texts(agent.messages()) == ["one", "a", "three", "b"]


async def test_an_agent_without_a_model_says_so_and_takes_one_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent("bot", tools=[weather], instructions="Short.")
    with caplog.at_level(logging.ERROR):
        told = await answer(agent, "hi")
    assert end_of(told) == RunEnd.by(EndReason.INTERNAL_ERROR)
    assert "agent bot has no model; make it with one" in caplog.text
    with pytest.raises(ValueError, match="no model"):
        await agent.ask("hi")
    assert agent.messages() == []
    model = ScriptedModel(["hello"], inputs=frozenset({"image"}))
    other = agent.with_model(model)
    assert other.accepts() == {"image"}
    assert agent.accepts() == frozenset()
    assert texts(kept(await answer(other, "hi"))) == ["hello"]
    assert model.prompts[0].system == "Short."
    assert [tool.name for tool in model.prompts[0].tools] == ["weather"]


@pytest.mark.requirement("AGT-20")
async def test_messages_bear_the_time_at_which_their_call_ended() -> None:
    clock = StepClock()
    ended: dict[str, int] = {}

    async def slow() -> str:
        await second_done.wait()
        ended["slow"] = clock.now()
        return "slow"

    async def quick() -> str:
        ended["quick"] = clock.now()
        second_done.set()
        return "quick"

    second_done = asyncio.Event()
    calls = [CallPiece("0", name="slow", call_id="a"), CallPiece("1", name="quick", call_id="b")]
    agent = Agent("bot", model=ScriptedModel([["x", *calls], "y"]), tools=[slow, quick], clock=clock)
    await agent.ask("go")
    asked, called, slow_result, quick_result, final = [
        message.created_at or 0 for message in agent.messages()
    ]
    assert asked < called < ended["quick"] < quick_result < slow_result < final
    assert ended["quick"] < ended["slow"] < slow_result
    assert all(moment % 1_000_000_000 == 0 for moment in (asked, called, slow_result, quick_result, final))


async def test_an_assistant_message_tells_who_made_it_and_what_it_cost() -> None:
    finished = Finished(StopReason.STOP, usage=Usage(input_tokens=3, output_tokens=2), response_id="r1")
    model = ScriptedModel([["hi", finished]], provider="acme", name="acme-1")
    told = await answer(Agent("bot", model=model), "hello")
    (message,) = kept(told)
    assert (message.provider, message.model, message.response_id) == ("acme", "acme-1", "r1")
    assert message.sender_id == "bot"
    assert message.usage == finished.usage
    assert end_of(told).usage == (("acme", "acme-1", finished.usage),)


async def test_usage_is_counted_for_each_model_over_all_calls() -> None:
    first = Finished(StopReason.TOOL_USE, usage=Usage(input_tokens=3, output_tokens=2))
    second = Finished(StopReason.STOP, usage=Usage(input_tokens=10, output_tokens=1))
    model = ScriptedModel([[*WEATHER, first], ["x", second]])
    told = await answer(Agent("bot", model=model, tools=[weather]), "hello")
    assert end_of(told).usage == (("scripted", "script", Usage(input_tokens=13, output_tokens=3)),)


async def test_blocks_keep_their_order_and_thinking_has_ids_of_its_own() -> None:
    pieces = [
        ThinkingPiece("first "),
        ThinkingPiece("thought", signature="sig"),
        ThinkingPiece("second", new=True),
        TextPiece("Look: "),
        *WEATHER,
        TextPiece("wait."),
        ServerCall("srv", "search", '{"q":1}', "web_search", content="found"),
    ]
    told = await answer(Agent("bot", model=ScriptedModel([pieces, "end"]), tools=[weather]), "go")
    message = kept(told)[0]
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "thinking", "text", "tool_call", "text", "tool_call"]
    one, two = [block for block in message.content if isinstance(block, Thinking)]
    assert (one.text, one.signature, two.text) == ("first thought", "sig", "second")
    assert one.id != two.id
    assert one.created_at is not None
    assert [call.id for call in message.tool_calls()] == ["call-1"]
    served = message.content[-1]
    assert isinstance(served, ToolCall)
    assert (served.server, served.server_type) == (True, "web_search")
    assert texts(kept(told))[1:] == ["sunny in Basel", "end"]


async def test_space_alone_is_neither_shown_nor_kept_and_leading_space_is_not_lost() -> None:
    told = await answer(Agent("bot", model=ScriptedModel([["\n", " ", "", "hi", "\n"]])), "go")
    (message,) = kept(told)
    assert message.content == (Text(text="\n hi\n"),)
    told = await answer(Agent("bot", model=ScriptedModel([[" ", *WEATHER, "\n\n"], [" \n"]])), "go")
    assert [block.type for message in kept(told) for block in message.content] == ["tool_call", "text"]


async def test_a_response_with_nothing_in_it_is_not_kept() -> None:
    told = await answer(Agent("bot", model=ScriptedModel([["", "  "]])), "go")
    assert kept(told) == []
    assert end_of(told).reason is EndReason.DONE


@pytest.mark.parametrize("given", ["", "taken", "call-1", "x" * 300, "new\nline", "\ud800"])
async def test_a_call_id_that_is_missing_used_or_unfit_is_replaced(given: str) -> None:
    earlier = assistant_message([ToolCall(id="taken", name="weather")])
    calls = [*WEATHER, CallPiece("1", '{"city":"Bern"}', name="weather", call_id=given)]
    told = await answer(
        Agent("bot", model=ScriptedModel([calls, "end"]), tools=[weather]), "go", earlier, "again"
    )
    made = [call.id for call in kept(told)[0].tool_calls()]
    assert made[0] == "call-1"
    assert made[1] not in ("call-1", "taken", given)
    assert texts(kept(told))[1:3] == ["sunny in Basel", "sunny in Bern"]


async def test_the_same_id_in_a_later_response_is_another_call() -> None:
    told = await answer(Agent("bot", model=ScriptedModel([WEATHER, WEATHER, "end"]), tools=[weather]), "go")
    made = [call.id for message in kept(told) for call in message.tool_calls()]
    assert len(set(made)) == 2


async def test_a_call_that_history_left_open_is_answered_in_the_prompt_and_nowhere_else() -> None:
    model = ScriptedModel(["fine"])
    crashed = assistant_message([ToolCall(id="open", name="weather", arguments='{"ci')])
    told = await answer(Agent("bot", model=model, tools=[weather]), "go", crashed, "and now?")
    sent = model.prompts[0].messages
    assert [message.role.value for message in sent] == ["user", "assistant", "tool_result", "user"]
    assert sent[2].call_id == "open"
    assert sent[2].is_error
    assert sent[1].tool_calls()[0].arguments == "{}"
    assert texts(kept(told)) == ["fine"]


@pytest.mark.requirement("MSG-11")
async def test_the_loop_goes_on_after_tool_use_alone_and_looks_at_the_calls_for_that() -> None:
    says_stop = [*WEATHER, Finished(StopReason.STOP)]
    says_tools = ["no calls", Finished(StopReason.TOOL_USE)]
    told = await answer(Agent("bot", model=ScriptedModel([says_stop, says_tools]), tools=[weather]), "go")
    made = [message.stop_reason for message in kept(told) if message.role is Role.ASSISTANT]
    assert made == [StopReason.TOOL_USE, StopReason.STOP]
    assert end_of(told).reason is EndReason.DONE


@pytest.mark.requirement("MSG-11")
async def test_an_answer_cut_by_its_length_ends_the_run_and_its_calls_are_not_run() -> None:
    ran: list[str] = []

    def note(city: str) -> str:
        ran.append(city)
        return city

    cut = [CallPiece("0", '{"city":"Ba', name="note", call_id="c"), Finished(StopReason.LENGTH)]
    told = await answer(Agent("bot", model=ScriptedModel([cut]), tools=[note]), "go")
    message, result = kept(told)
    assert message.stop_reason is StopReason.LENGTH
    assert result.is_error
    assert "token limit" in result.join_text()
    assert ran == []
    assert end_of(told).reason is EndReason.LENGTH
    assert end_of(told).error is None


async def test_capabilities_tell_what_is_true() -> None:
    from ag_ui.core import AgentCapabilities

    agent = Agent("bot", model=ScriptedModel([], inputs=frozenset({"image"})), tools=[weather], limits=QUICK)
    told = AgentCapabilities.model_validate(agent.capabilities())
    assert told.tools is not None
    assert told.tools.supported
    assert [tool.name for tool in told.tools.items or []] == ["weather"]
    assert told.tools.client_provided
    assert told.human_in_the_loop is not None
    assert not told.human_in_the_loop.supported
    assert told.state is not None
    assert (told.state.snapshots, told.state.persistent_state, told.state.deltas) == (True, True, False)
    assert told.multi_agent is not None
    assert not told.multi_agent.supported
    assert told.output is not None
    assert told.output.structured_output is False
    assert told.multimodal is not None
    assert told.multimodal.input is not None
    assert told.multimodal.input.image
    assert not told.multimodal.input.audio

    def count(context: ToolContext) -> object:
        return context.patch_state([{"op": "add", "path": "/n", "value": 1}])

    rich = Agent(
        "bot",
        model=ScriptedModel([]),
        tools=[tool(approval=True)(weather), count],
        handoffs=[Agent("doctor", description="Heals.")],
        output={"type": "object"},
    )
    told = AgentCapabilities.model_validate(rich.capabilities())
    assert told.human_in_the_loop is not None
    assert told.human_in_the_loop.approve_with_edits
    assert told.state is not None
    assert told.state.deltas
    assert told.multi_agent is not None
    assert [one.name for one in told.multi_agent.subagents or []] == ["doctor"]
    assert told.output is not None
    assert told.output.structured_output


async def test_leaving_a_run_in_the_middle_closes_the_models_stream() -> None:
    model = ScriptedModel([["a", "b", "c"]])
    run = Agent("bot", model=model).respond(context("go"))
    async for _ in run:
        break
    await anext(run)
    await run.aclose()
    assert model.closed == 1
