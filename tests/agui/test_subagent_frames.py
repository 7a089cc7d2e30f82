"""Sub-agents on the wire: for 1.0 clients, each opened and closed once."""

import pytest

from app.agent.events import AgentEvent, RunDone, SubagentEnded, SubagentStarted
from app.conversation.interrupts import Interrupt
from app.conversation.outcomes import EndReason, RunEnd, RunError
from tests.agui.order import Told, check_order, check_shape, told
from tests.agui.test_translate import OPENED, frames_of

pytestmark = pytest.mark.requirement("AGUI-08")
STARTED = SubagentStarted("r2", "t2", "helper", "Helps.", "c")


def agents(*events: AgentEvent, end: EndReason = EndReason.DONE) -> list[Told]:
    """What a 1.0 client is told between the first and the last event."""
    frames = frames_of([OPENED, *events, RunDone(RunEnd.by(end))])
    assert len(told(frames, legacy=True)) == 2
    seen = told(frames)
    check_order(seen)
    for event in seen:
        check_shape(event)
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in seen[1:-1]]


def test_a_subagent_is_named_with_its_call_and_its_thread() -> None:
    started, ended = agents(STARTED, SubagentEnded("r2", RunEnd(EndReason.DONE)))
    assert started == {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "r2",
        "name": "helper",
        "description": "Helps.",
        "parentToolCallId": "c",
        "metadata": {"threadId": "t2"},
    }
    assert ended == {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "r2",
        "outcome": {"type": "success"},
    }


def test_a_subagent_without_a_description_has_none_on_the_wire() -> None:
    assert "description" not in agents(SubagentStarted("r2", "t2", "helper", "", "c"))[0]


def test_a_subagent_that_asks_is_suspended_by_its_questions() -> None:
    end = RunEnd(EndReason.INTERRUPTED, interrupts=(Interrupt(id="i1", reason="tool_call"),))
    assert agents(STARTED, SubagentEnded("r2", end))[1]["outcome"] == {
        "type": "suspended",
        "interruptIds": ["i1"],
    }


def test_a_structured_answer_of_a_subagent_is_its_result() -> None:
    end = RunEnd(EndReason.DONE, result={"n": 1})
    assert agents(STARTED, SubagentEnded("r2", end))[1]["result"] == {"n": 1}


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (RunEnd.by(EndReason.MODEL_ERROR), "MODEL_ERROR"),
        (RunEnd(EndReason.HOOK_ABORTED, RunError("NO", "Not here.")), "NO"),
        (RunEnd.by(EndReason.STOP_REQUESTED), "CANCELLED"),
    ],
)
def test_a_subagent_that_did_not_finish_is_an_error_and_the_run_goes_on(end: RunEnd, code: str) -> None:
    _, failed = agents(STARTED, SubagentEnded("r2", end))
    assert (failed["type"], failed["code"]) == ("SUBAGENT_ERROR", code)
    assert failed["message"]


@pytest.mark.parametrize("end", [EndReason.DONE, EndReason.STOP_REQUESTED, EndReason.INTERNAL_ERROR])
def test_a_subagent_that_is_left_open_is_closed_before_the_run_ends(end: EndReason) -> None:
    second = SubagentStarted("r3", "t3", "other", "", "c")
    told_of = [(event["type"], event["subagentRunId"]) for event in agents(STARTED, second, end=end)]
    assert told_of[2:] == [("SUBAGENT_ERROR", "r3"), ("SUBAGENT_ERROR", "r2")]


def test_a_subagent_is_opened_and_closed_once() -> None:
    ended = SubagentEnded("r2", RunEnd(EndReason.DONE))
    kinds = [event["type"] for event in agents(ended, STARTED, STARTED, ended, ended, STARTED)]
    assert kinds == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
