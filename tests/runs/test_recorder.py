"""Commit, translate, append, wake: in that order, and whatever the agent or the database does."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from app.agent.events import (
    AgentEvent,
    MessageDone,
    RunDone,
    RunOpened,
    StepEnded,
    StepStarted,
    TextDelta,
    ToolDone,
)
from app.agui.hydrate import WireRenderer
from app.agui.translate import Translator
from app.clock import SystemClock
from app.conversation.blocks import ToolCall
from app.conversation.messages import StopReason, assistant_message, tool_result_message
from app.conversation.outcomes import EndReason, RunEnd
from app.runs.log_memory import MemoryLog
from app.runs.recorder import Recorder
from tests.runs.ledgers import Ledger
from tests.services.waiting import eventually

ANSWER = assistant_message("All of it.", id="m1")
ASKING = assistant_message(
    [ToolCall(id="c1", name="look", arguments="{}")], id="m2", stop_reason=StopReason.TOOL_USE
)
RESULT = tool_result_message("c1", "look", "Seen.", id="m3")
DONE = RunDone(RunEnd.by(EndReason.DONE))


class Story:
    """A recorder with its ledger and log, and the events that clients would have by now."""

    def __init__(self, ledger: Ledger, delays: tuple[float, ...] = (0.0, 0.0)) -> None:
        self.ledger = ledger
        self.log = MemoryLog(1, 1)
        translate = Translator(SystemClock()).translate
        self.log.append(translate(RunOpened("t", "r", "a")))
        self.recorder = Recorder(
            namespace="n",
            run_id="r",
            ledger=ledger,
            log=self.log,
            translate=translate,
            renderer=WireRenderer(),
            clock=SystemClock(),
            agent="a",
            delays=delays,
        )

    async def tell(self, *events: Any) -> bool:
        """Records events; an exception among them is raised by the agent."""

        async def told() -> AsyncIterator[AgentEvent]:
            for event in events:
                if isinstance(event, BaseException):
                    raise event
                yield event

        async def begin() -> AsyncIterator[AgentEvent]:
            return told()

        return await self.recorder.record(begin)

    async def types(self) -> list[str]:
        """What a follower has by now, as event types."""
        return [event["type"] for event in await self.events()]

    async def events(self) -> list[dict[str, Any]]:
        if self.log.last == 0:
            return []
        piece = await anext(self.log.follow())
        return [orjson.loads(line[6:]) for line in piece.split(b"\n") if line.startswith(b"data: ")]


@pytest.mark.requirement("AGUI-01", "HIS-09")
@pytest.mark.parametrize(
    ("event", "promise"), [(MessageDone(ANSWER), "TEXT_MESSAGE_END"), (ToolDone(RESULT), "TOOL_CALL_RESULT")]
)
async def test_what_promises_storage_is_told_only_once_it_is_stored(event: Any, promise: str) -> None:
    gate = asyncio.Event()
    story = Story(Ledger(gate=gate))
    telling = asyncio.create_task(story.tell(TextDelta("m1", "All of it."), event, DONE))
    await eventually(lambda: story.ledger.asked == 1)
    assert promise not in await story.types()
    gate.set()
    assert await telling
    assert promise in await story.types()


@pytest.mark.requirement("AGUI-01")
async def test_the_terminal_event_comes_only_once_the_end_is_stored() -> None:
    gate = asyncio.Event()
    story = Story(Ledger(gate=gate))
    telling = asyncio.create_task(story.tell(DONE))
    await eventually(lambda: story.ledger.asked == 1)
    assert (await story.types())[-1] == "RUN_STARTED"
    gate.set()
    assert await telling
    assert (await story.types())[-1] == "RUN_FINISHED"


@pytest.mark.requirement("AGUI-01")
async def test_the_last_message_and_the_end_are_stored_at_once_and_told_in_order() -> None:
    gate = asyncio.Event()
    story = Story(Ledger(gate=gate))
    said = [StepStarted("model"), TextDelta("m1", "All of it."), MessageDone(ANSWER, last=True)]
    telling = asyncio.create_task(story.tell(*said, StepEnded("model"), DONE))
    await eventually(lambda: story.ledger.asked == 1)
    assert (await story.types())[-1] == "TEXT_MESSAGE_CONTENT"
    gate.set()
    assert await telling
    assert (story.ledger.asked, story.ledger.texts()) == (1, ["All of it."])
    assert (await story.types())[-3:] == ["TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED"]


async def test_an_agent_that_goes_on_behind_its_last_message_loses_nothing() -> None:
    story = Story(Ledger())
    more = assistant_message("More.", id="m9")
    assert await story.tell(MessageDone(ANSWER, last=True), TextDelta("m9", "More."), MessageDone(more), DONE)
    assert story.ledger.texts() == ["All of it.", "More."]
    told = [event["messageId"] for event in await story.events() if event["type"] == "TEXT_MESSAGE_END"]
    assert told == ["m1", "m9"]


async def test_a_database_that_refuses_for_a_moment_costs_nothing() -> None:
    story = Story(Ledger(failures=2))
    assert await story.tell(MessageDone(ANSWER), DONE)
    assert story.ledger.texts() == ["All of it."]
    assert (await story.types())[-1] == "RUN_FINISHED"


async def test_a_finished_answer_that_could_not_be_stored_when_it_came_is_stored_with_the_end() -> None:
    story = Story(Ledger(failures=3))
    assert await story.tell(MessageDone(ANSWER), DONE)
    assert story.ledger.texts() == ["All of it."]
    assert story.ledger.end == RunEnd.by(EndReason.STORAGE_FAILED)
    assert (await story.types())[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]


async def test_an_end_that_cannot_be_stored_is_told_as_a_failure_and_stored_as_one_later() -> None:
    story = Story(Ledger(failures=3))
    assert not await story.tell(DONE)
    last = (await story.events())[-1]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "STORAGE_FAILED")
    await story.recorder.settle()
    assert story.ledger.end == RunEnd.by(EndReason.STORAGE_FAILED)
    assert (await story.types()).count("RUN_ERROR") == 1


@pytest.mark.requirement("AGUI-01")
@pytest.mark.parametrize("breakage", [ValueError("secret"), SystemExit(1), asyncio.CancelledError()])
async def test_an_agent_that_breaks_off_has_its_calls_answered_and_its_run_ended(
    breakage: BaseException,
) -> None:
    story = Story(Ledger())
    assert await story.tell(MessageDone(ASKING), breakage)
    assert story.ledger.end == RunEnd.by(EndReason.INTERNAL_ERROR)
    told = await story.events()
    assert [event["type"] for event in told][-2:] == ["TOOL_CALL_RESULT", "RUN_ERROR"]
    assert "secret" not in str(told)


@pytest.mark.requirement("AGUI-01")
async def test_an_agent_whose_clean_up_fails_ends_as_it_said() -> None:
    story = Story(Ledger())

    async def untidy() -> AsyncIterator[AgentEvent]:
        try:
            yield MessageDone(ANSWER)
            yield DONE
        finally:
            raise RuntimeError("while cleaning up")

    async def begin() -> AsyncIterator[AgentEvent]:
        return untidy()

    assert await story.recorder.record(begin)
    assert story.ledger.end == RunEnd.by(EndReason.DONE)
    assert (await story.types())[-1] == "RUN_FINISHED"


async def test_an_agent_that_cannot_begin_ends_its_run() -> None:
    story = Story(Ledger())

    async def begin() -> AsyncIterator[AgentEvent]:
        raise RuntimeError("no model")

    assert await story.recorder.record(begin)
    assert (await story.types())[-1] == "RUN_ERROR"
