"""How a thread at rest is told to a client."""

from typing import Any

import pytest

from app.agui.connect import connect
from app.conversation.interrupts import ChildRun, Interrupt
from app.conversation.messages import Usage
from app.conversation.outcomes import EndReason, RunEnd, RunError
from app.store.adapter import RunRecord
from tests.agui.order import check_order, check_shape, told
from tests.agui.records import earlier, record
from tests.agui.requests import StillClock

MESSAGES = b'[{"id":"u1","role":"user","content":"hi","metadata":{"createdAt":null}}]'


def shown(
    latest: RunRecord | None, *, legacy: bool = False, pending: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    frames = connect("thread", "asked", latest, MESSAGES, pending_calls=pending, clock=StillClock())
    events = told(frames, legacy=legacy)
    check_order(events)
    for event in events:
        check_shape(event)
    return events


@pytest.mark.requirement("AGUI-07")
@pytest.mark.parametrize("legacy", [True, False])
def test_a_client_gets_state_and_all_messages_under_its_own_run_id(legacy: bool) -> None:
    started, state, messages, finished = shown(record(RunEnd(EndReason.DONE, result=[1])), legacy=legacy)
    assert (started["type"], started["threadId"], started["runId"]) == ("RUN_STARTED", "thread", "asked")
    assert started["input"]["messages"] == []
    assert state["snapshot"] == {"n": 1}
    assert [message["id"] for message in messages["messages"]] == ["u1"]
    assert (finished["type"], finished["runId"]) == ("RUN_FINISHED", "asked")


@pytest.mark.parametrize("latest", [None, earlier(), earlier(state={})])
def test_without_state_there_is_no_snapshot_of_it(latest: RunRecord | None) -> None:
    assert [event["type"] for event in shown(latest)] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize("legacy", [True, False])
def test_open_questions_are_asked_again(legacy: bool) -> None:
    asked = Interrupt(
        id="i1",
        reason="tool_call",
        call_id="c1",
        memory={"approved": True},
        child=ChildRun(thread_id="t", run_id="r"),
    )
    end = RunEnd(EndReason.INTERRUPTED, interrupts=(asked,))
    outcome = shown(record(end), legacy=legacy)[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    (interrupt,) = outcome["interrupts"]
    assert (interrupt["id"], interrupt["reason"], interrupt["toolCallId"]) == ("i1", "tool_call", "c1")
    assert not {"memory", "child", "callId"} & interrupt.keys()
    resumed = earlier(EndReason.INTERRUPTED, interrupts=record(end).interrupts, resumed_by="later")
    assert shown(resumed)[-1].get("outcome", {}).get("type") != "interrupt"


@pytest.mark.requirement("AGT-15")
def test_calls_that_wait_for_the_client_are_named_to_those_who_can_read_it() -> None:
    latest = earlier(EndReason.CLIENT_TOOLS)
    outcome = {"type": "success", "pendingToolCallIds": ["c1"]}
    assert shown(latest, pending=("c1",))[-1]["outcome"] == outcome
    assert "pendingToolCallIds" not in shown(latest, legacy=True, pending=("c1",))[-1].get("outcome", {})


def test_a_run_that_failed_or_was_stopped_ends_as_it_did() -> None:
    failed = record(RunEnd(EndReason.MODEL_ERROR, RunError("MODEL_ERROR", "It failed.")))
    assert (
        shown(failed)[-1].items()
        >= {"type": "RUN_ERROR", "code": "MODEL_ERROR", "message": "It failed."}.items()
    )
    assert shown(record(RunEnd.by(EndReason.STOP_REQUESTED)))[-1]["outcome"] == {"type": "cancelled"}


def test_tokens_are_not_told_a_second_time() -> None:
    end = RunEnd(EndReason.DONE, usage=(("p", "m", Usage(input_tokens=5)),))
    assert "usage" not in shown(record(end))[-1]
