"""Models that fail, hang or never come to an end."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent, TextDelta
from app.agent.limits import Limits
from app.agent.loop import Loop
from app.agent.mind import Mind
from app.agent.models.base import CallPiece, Finished, ModelError, ModelEvent, ServerCall, TextPiece
from app.agent.models.scripted import CUT, Reply, ScriptedModel
from app.agent.prompt import Prompt
from app.agent.toolbox import Toolbox
from app.clock import Instant
from app.conversation.blocks import ToolCall
from app.conversation.messages import Role, StopReason, Usage
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import RunFailed
from tests.agent.running import QUICK, StepClock, answer, collect, context, end_of, kept, texts


def busy() -> ModelError:
    return ModelError("The provider is busy.", retryable=True)


def weather(city: str = "Basel") -> str:
    return f"sunny in {city}"


CALL = CallPiece("0", "{}", name="weather")


@pytest.mark.requirement("AGT-17")
@pytest.mark.parametrize("first", [[busy()], [" ", busy()], [CUT], ["\n", CUT]])
async def test_a_call_that_fails_before_its_first_token_is_tried_again(first: Reply) -> None:
    model = ScriptedModel([first, [busy()], "at last"])
    told = await answer(Agent("bot", model=model, limits=QUICK), "go")
    assert texts(kept(told)) == ["at last"]
    assert end_of(told).reason is EndReason.DONE
    assert len(model.prompts) == model.closed == 3
    assert [*model.prompts[0].messages] == [*model.prompts[2].messages]


async def test_the_tries_are_bounded_and_the_waits_between_them_grow() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    limits = Limits(retries=3, retry_seconds=0.5)
    model = ScriptedModel([[busy()]] * 9)
    mind = Mind("bot", model, "", Toolbox((), limits), limits, sleep)
    told = await collect(Loop(mind, context("go")).events())
    assert waits == [0.5, 1.0, 2.0]
    assert len(model.prompts) == 4
    assert kept(told) == []
    error = end_of(told).error
    assert error is not None
    assert (error.code, error.message) == ("MODEL_ERROR", "The provider is busy.")


async def test_a_failure_that_will_not_pass_is_not_tried_again() -> None:
    model = ScriptedModel([[ModelError("The provider refused the key.")], "never"])
    told = await answer(Agent("bot", model=model, limits=QUICK), "go")
    assert len(model.prompts) == 1
    assert end_of(told).reason is EndReason.MODEL_ERROR
    assert end_of(told).status is RunStatus.FAILED


@pytest.mark.requirement("MSG-11")
@pytest.mark.parametrize("end", [busy(), CUT, Finished(StopReason.ERROR)])
async def test_a_failure_after_the_first_token_keeps_the_text_and_is_not_tried_again(
    end: ModelError | Finished,
) -> None:
    model = ScriptedModel([["The first half", end], "again"])
    told = await answer(Agent("bot", model=model, limits=QUICK), "go")
    (message,) = kept(told)
    assert message.stop_reason is StopReason.ERROR
    assert message.join_text() == "The first half"
    assert end_of(told).reason is EndReason.MODEL_ERROR
    assert len(model.prompts) == 1


async def test_calls_of_an_answer_that_failed_are_answered_and_not_run() -> None:
    told = await answer(Agent("bot", model=ScriptedModel([[CALL, CUT]]), tools=[weather]), "go")
    message, result = kept(told)
    assert message.stop_reason is StopReason.ERROR
    assert result.is_error
    assert "not run" in result.join_text()


async def test_an_end_that_a_failed_try_told_is_not_the_end_of_the_next() -> None:
    spent = Finished(StopReason.LENGTH, usage=Usage(input_tokens=3))

    class Failing:
        provider = name = "failing"
        inputs: frozenset[str] = frozenset()
        tries = 0

        async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            self.tries += 1
            if self.tries == 1:
                yield spent
                raise busy()
            yield TextPiece("cut in the mid")

    told = await answer(Agent("bot", model=Failing(), limits=QUICK), "go")
    (message,) = kept(told)
    assert message.join_text() == "cut in the mid"
    assert message.stop_reason is StopReason.ERROR
    assert message.usage is None
    assert end_of(told).reason is EndReason.MODEL_ERROR
    assert end_of(told).usage == (("failing", "failing", Usage(input_tokens=3)),)


async def test_a_call_without_a_name_is_answered_like_any_other() -> None:
    server_side = ServerCall("s", "", "{}", "web_search")
    model = ScriptedModel([[CallPiece("0", "{}", name="", call_id="a"), server_side], "sorry"])
    told = await answer(Agent("bot", model=model, tools=[weather]), "go")
    message, result, last = kept(told)
    assert [block.name for block in message.content if isinstance(block, ToolCall)] == ["unknown"] * 2
    assert result.tool_name == "unknown"
    assert "no tool named unknown" in result.join_text()
    assert last.join_text() == "sorry"


async def test_a_failure_in_a_later_turn_keeps_the_finished_work() -> None:
    model = ScriptedModel([["Looking.", CALL], [ModelError("Gone.")]])
    told = await answer(Agent("bot", model=model, tools=[weather]), "go")
    assert texts(kept(told)) == ["Looking.", "sunny in Basel"]
    assert end_of(told).reason is EndReason.MODEL_ERROR


async def test_a_conversation_goes_on_after_a_failure() -> None:
    model = ScriptedModel([["half", CALL, CUT], "whole"])
    agent = Agent("bot", model=model, tools=[weather])
    with pytest.raises(RunFailed, match="lost before its answer was complete") as failed:
        await agent.ask("one")
    assert failed.value.code == "model_error"
    assert texts(agent.messages())[1] == "half"
    final = await agent.ask("two")
    assert final is not None
    assert final.join_text() == "whole"
    roles = [message.role for message in model.prompts[1].messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL_RESULT, Role.USER]


async def test_a_bug_in_a_model_is_logged_and_ends_the_run_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = ScriptedModel([["half", CALL, ZeroDivisionError("key sk-123")]])
    with caplog.at_level(logging.ERROR):
        told = await answer(Agent("bot", model=model, tools=[weather]), "go")
    assert kept(told)[0].stop_reason is StopReason.ERROR
    error = end_of(told).error
    assert error is not None
    assert error.code == "INTERNAL_ERROR"
    assert "sk-123" not in error.message
    assert "ZeroDivisionError" in caplog.text


async def test_a_bug_anywhere_still_ends_the_run_with_every_call_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Breaking(StepClock):
        def now(self) -> Instant:
            if super().now() == 2_000_000_000:
                raise OSError("no time")
            return self.seconds

    model = ScriptedModel([["Looking.", CALL], "never"])
    agent = Agent("bot", model=model, tools=[weather])
    told = await collect(agent.respond(context("go", clock=Breaking())))
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
    assert texts(kept(told))[0] == "Looking."
    assert len(model.prompts) == 1


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_stream_that_will_not_close_does_not_hold_up_who_leaves(hangs: bool) -> None:
    class Clinging:
        provider = name = "clinging"
        inputs: frozenset[str] = frozenset()

        async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            try:
                yield TextPiece("half")
            finally:
                if hangs:
                    await asyncio.Event().wait()
                raise RuntimeError("cannot close")

    run = Agent("bot", model=Clinging(), limits=QUICK).respond(context("go"))
    told = [await anext(run), await anext(run)]
    assert isinstance(told[1], TextDelta)
    await asyncio.wait_for(run.aclose(), 5)


@pytest.mark.requirement("AGT-17")
async def test_a_model_that_falls_silent_times_out_and_its_text_is_kept() -> None:
    model = ScriptedModel([["Thinking about it", asyncio.Event()]])
    told = await answer(Agent("bot", model=model, limits=Limits(model_idle_seconds=0.02)), "go")
    (message,) = kept(told)
    assert message.stop_reason is StopReason.ERROR
    assert message.join_text() == "Thinking about it"
    error = end_of(told).error
    assert error is not None
    assert error.code == "MODEL_TIMEOUT"
    assert model.closed == 1


async def test_a_model_that_talks_slowly_or_a_slow_consumer_is_not_a_silent_model() -> None:
    class Slow:
        provider = name = "slow"
        inputs: frozenset[str] = frozenset()

        async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            for _ in range(6):
                await asyncio.sleep(0.02)
                yield TextPiece("x")
            yield Finished(StopReason.STOP)

    agent = Agent("bot", model=Slow(), limits=Limits(model_idle_seconds=0.09))
    told: list[AgentEvent] = []
    async for event in agent.respond(context("go")):
        told.append(event)
        if len(told) == 3:
            await asyncio.sleep(0.2)
    assert end_of(told).reason is EndReason.DONE


async def test_tools_take_no_time_from_the_models_patience() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "slow"

    model = ScriptedModel([[CallPiece("0", name="slow")], "end"])
    told = await answer(Agent("bot", model=model, tools=[slow], limits=Limits(model_idle_seconds=0.03)), "go")
    assert texts(kept(told)) == ["", "slow", "end"]


@pytest.mark.parametrize("reply", [["a", asyncio.Event()], [CallPiece("0", name="endless")]])
@pytest.mark.requirement("AGT-17")
async def test_a_run_that_takes_too_long_ends_and_keeps_its_work(reply: Reply) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    limits = Limits(run_seconds=0.05, grace_seconds=0.05)
    told = await answer(Agent("bot", model=ScriptedModel([reply]), tools=[endless], limits=limits), "go")
    error = end_of(told).error
    assert error is not None
    assert error.code == "RUN_TIMEOUT"
    assert kept(told)


@pytest.mark.requirement("AGT-17")
async def test_a_loop_that_never_ends_is_ended_and_its_last_calls_are_answered() -> None:
    ran: list[str] = []

    def note() -> str:
        ran.append("x")
        return "noted"

    model = ScriptedModel([[CallPiece("0", name="note")]] * 9)
    told = await answer(Agent("bot", model=model, tools=[note], limits=Limits(turns=3)), "go")
    assert len(model.prompts) == 3
    assert len(ran) == 2
    last = kept(told)[-1]
    assert last.is_error
    assert "limit" in last.join_text()
    error = end_of(told).error
    assert error is not None
    assert error.code == "LOOP_LIMIT"


@pytest.mark.requirement("AGT-17")
async def test_a_token_budget_ends_the_run_before_the_next_tools() -> None:
    spent = Finished(StopReason.TOOL_USE, usage=Usage(input_tokens=60, output_tokens=50))
    model = ScriptedModel([[CALL, spent], "never"])
    told = await answer(Agent("bot", model=model, tools=[weather], limits=Limits(tokens=100)), "go")
    error = end_of(told).error
    assert error is not None
    assert error.code == "TOKEN_BUDGET"
    assert "budget" in kept(told)[1].join_text()
    done = Finished(StopReason.STOP, usage=Usage(total_tokens=500))
    told = await answer(
        Agent("bot", model=ScriptedModel([["all said", done]]), limits=Limits(tokens=100)), "go"
    )
    assert end_of(told).reason is EndReason.DONE
