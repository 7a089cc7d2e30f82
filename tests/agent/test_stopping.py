"""A run that is told to stop: at once, whatever it waits for, and nothing that was said is lost."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agent.agent import Agent
from app.agent.context import StopSignal
from app.agent.events import AgentEvent, RunDone, StepStarted, TextDelta, ToolCallDelta, ToolDone
from app.agent.models.base import CallPiece, ThinkingPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.pairing import paired
from app.conversation.messages import StopReason
from app.conversation.outcomes import EndReason
from tests.agent.running import QUICK, bounded, check, context, end_of, kept, texts


async def stopped_at(
    agent: Agent, when: Callable[[AgentEvent], bool], reason: EndReason = EndReason.STOP_REQUESTED
) -> list[AgentEvent]:
    """The events of a run that is asked to stop a moment after the first event that fits."""
    stop = StopSignal()
    told: list[AgentEvent] = []
    loop = asyncio.get_running_loop()
    asked = False
    async for event in bounded(agent.respond(context("go", stop=stop))):
        told.append(event)
        if not asked and when(event):
            asked = True
            loop.call_soon(loop.call_soon, stop.request, reason)
    check(told)
    assert asked
    return told


@pytest.mark.requirement("MSG-11")
async def test_a_stop_in_the_middle_of_an_answer_keeps_what_was_said() -> None:
    never = asyncio.Event()
    model = ScriptedModel([[ThinkingPiece("hm"), "The first ", "half", never, "second half"]])
    told = await stopped_at(Agent("bot", model=model), lambda event: event == _text(event, "half"))
    (message,) = kept(told)
    assert message.stop_reason is StopReason.ABORTED
    assert message.join_text() == "The first half"
    assert end_of(told).reason is EndReason.STOP_REQUESTED
    assert end_of(told).error is None
    assert model.closed == 1


def _text(event: AgentEvent, delta: str) -> AgentEvent | None:
    return event if isinstance(event, TextDelta) and event.delta == delta else None


async def test_a_stop_while_a_call_is_being_written_answers_that_call_and_runs_nothing() -> None:
    never, ran = asyncio.Event(), asyncio.Event()

    def note() -> None:
        ran.set()

    whole = CallPiece("0", "{}", name="note", call_id="whole")
    half = CallPiece("1", '{"ci', name="note", call_id="half")
    model = ScriptedModel([[whole, half, never]])
    told = await stopped_at(
        Agent("bot", model=model, tools=[note]),
        lambda event: isinstance(event, ToolCallDelta) and event.call_id == "half",
    )
    message, first, second = kept(told)
    assert message.stop_reason is StopReason.ABORTED
    assert [call.arguments for call in message.tool_calls()] == ["{}", '{"ci']
    assert first.is_error
    assert second.is_error
    assert "not run" in first.join_text()
    assert not ran.is_set()
    assert [call.arguments for call in paired([message])[0].tool_calls()] == ["{}", "{}"]


async def test_a_stop_before_the_first_token_leaves_no_empty_message() -> None:
    model = ScriptedModel([[asyncio.Event()]])
    told = await stopped_at(Agent("bot", model=model), lambda event: isinstance(event, StepStarted))
    assert kept(told) == []
    assert end_of(told).reason is EndReason.STOP_REQUESTED


async def test_a_stop_cancels_tools_and_keeps_the_results_that_came_first() -> None:
    cancelled: list[str] = []

    async def quick() -> str:
        return "quick result"

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("slow")
            raise
        return "never"

    pieces = [
        CallPiece("0", name="slow", call_id="a"),
        CallPiece("1", name="quick", call_id="b"),
        CallPiece("2", name="slow", call_id="c"),
    ]
    agent = Agent("bot", model=ScriptedModel([pieces]), tools=[quick, slow], limits=QUICK)
    stop = StopSignal()
    run = agent.respond(context("go", stop=stop))
    told: list[AgentEvent] = []
    async for event in bounded(run):
        told.append(event)
        if event == StepStarted("tools"):
            asyncio.get_running_loop().call_later(0.02, stop.request, EndReason.STOP_REQUESTED)
    check(told)
    _, first, second, third = kept(told)
    assert cancelled == ["slow", "slow"]
    assert (first.is_error, second.is_error, third.is_error) == (True, False, True)
    assert second.join_text() == "quick result"
    assert "cancelled" in first.join_text()


async def test_a_tool_that_ends_by_itself_in_its_grace_gives_a_real_result() -> None:
    async def careful() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "put everything away"
        return "never"

    model = ScriptedModel([[CallPiece("0", name="careful")]])
    agent = Agent("bot", model=model, tools=[careful], limits=QUICK)
    told = await stopped_at(agent, lambda event: event == StepStarted("tools"))
    result = kept(told)[1]
    assert not result.is_error
    assert result.join_text() == "put everything away"


async def test_a_tool_that_will_not_end_is_left_alone() -> None:
    release = threading.Event()
    stubborn_done = asyncio.Event()

    def hang() -> str:
        release.wait(10)
        return "late"

    async def stubborn() -> str:
        while not stubborn_done.is_set():
            try:
                await stubborn_done.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    pieces = [CallPiece("0", name="hang"), CallPiece("1", name="stubborn")]
    agent = Agent("bot", model=ScriptedModel([pieces]), tools=[hang, stubborn], limits=QUICK)
    told = await stopped_at(agent, lambda event: event == StepStarted("tools"))
    release.set()
    stubborn_done.set()
    assert [message.is_error for message in kept(told)[1:]] == [True, True]
    assert end_of(told).reason is EndReason.STOP_REQUESTED


async def test_a_stop_between_two_steps_is_seen_at_the_next_one() -> None:
    def quick() -> str:
        return "done"

    model = ScriptedModel([[CallPiece("0", name="quick")], "never said"])
    stop = StopSignal()
    told: list[AgentEvent] = []
    async for event in bounded(Agent("bot", model=model, tools=[quick]).respond(context("go", stop=stop))):
        told.append(event)
        if isinstance(event, ToolDone):
            stop.request(EndReason.REPLACED)
    check(told)
    assert texts(kept(told)) == ["", "done"]
    assert end_of(told).reason is EndReason.REPLACED


async def test_a_stop_ends_the_wait_between_two_tries() -> None:
    from app.agent.limits import Limits
    from app.agent.models.base import ModelError

    model = ScriptedModel([[ModelError("busy", retryable=True)]])
    agent = Agent("bot", model=model, limits=Limits(retry_seconds=3600))
    told = await stopped_at(agent, lambda event: isinstance(event, StepStarted))
    assert end_of(told).reason is EndReason.STOP_REQUESTED
    assert len(model.prompts) == 1


async def test_a_shutdown_ends_with_an_error_that_says_so() -> None:
    model = ScriptedModel([["a", asyncio.Event()]])
    told = await stopped_at(
        Agent("bot", model=model), lambda event: isinstance(event, TextDelta), EndReason.SHUTDOWN
    )
    error = end_of(told).error
    assert error is not None
    assert error.code == "SHUTDOWN"


async def test_a_cancelled_task_closes_the_model_and_lets_the_cancellation_through() -> None:
    model = ScriptedModel([["a", asyncio.Event()]])
    waits = asyncio.Event()

    async def drive() -> None:
        async for event in Agent("bot", model=model).respond(context("go")):
            if isinstance(event, TextDelta):
                waits.set()

    task = asyncio.create_task(drive())
    await asyncio.wait_for(waits.wait(), 5)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed == 1


@settings(max_examples=60, deadline=None)
@given(at=st.integers(min_value=0, max_value=25), turns=st.integers(min_value=0, max_value=6))
def test_a_stop_at_any_moment_leaves_a_history_that_can_go_on(at: int, turns: int) -> None:
    asyncio.run(_stop_after(at, turns))


async def _stop_after(events: int, turns: int) -> None:
    async def pause(n: int = 1) -> str:
        for _ in range(n):
            await asyncio.sleep(0)
        return "paused"

    calls = [CallPiece("0", '{"n":', name="pause"), CallPiece("1", "{}", name="pause"), CallPiece("0", "4}")]
    reply = [ThinkingPiece("hm"), "one ", "two", *calls]
    model = ScriptedModel([reply, reply, "end"])
    stop = StopSignal()
    told: list[AgentEvent] = []
    loop = asyncio.get_running_loop()

    def later(turns: int) -> None:
        if turns:
            loop.call_soon(later, turns - 1)
        else:
            stop.request(EndReason.STOP_REQUESTED)

    async for event in bounded(
        Agent("bot", model=model, tools=[pause], limits=QUICK).respond(context("go", stop=stop))
    ):
        told.append(event)
        if len(told) == events + 1:
            later(turns)
        await asyncio.sleep(0)
    check(told)
    messages = kept(told)
    assert isinstance(told[-1], RunDone)
    assert [message.id for message in paired(messages)] == [message.id for message in messages]
    assert model.closed == len(model.prompts)
