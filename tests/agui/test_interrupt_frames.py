"""Runs that end while somebody is to answer: a person, or the client."""

import json
from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import Interrupt as WireInterrupt

from app.agent.events import (
    Appended,
    MessageDone,
    RunDone,
    RunEvent,
    RunOpened,
    Snapshot,
    TextDelta,
    ToolDone,
)
from app.agui.hydrate import hydrate
from app.agui.interrupts import wire_interrupt
from app.conversation.blocks import Image, Text, ToolCall, UrlSource
from app.conversation.entries import MessageEntry
from app.conversation.interrupts import ChildRun, Interrupt
from app.conversation.messages import assistant_message, tool_result_message, user_message
from app.conversation.outcomes import EndReason, RunEnd
from tests.agui.order import Told, check_order, check_shape, told
from tests.agui.reducer import Client
from tests.agui.stories import wire_rows
from tests.agui.test_translate import OPENED, frames_of

BARE = Interrupt(id="i1", reason="input_required")
FULL = Interrupt(
    id="i2",
    reason="tool_call",
    message="May look run?",
    call_id="c",
    response_schema={"type": "object"},
    expires_at=1_700_000_000_000_000_000,
    metadata={"toolName": "look", "arguments": {"a": None}},
    child=ChildRun(thread_id="t2", run_id="r2"),
    memory={"approved": True},
)
CALLING = assistant_message([ToolCall(id="c", name="look", arguments="{}")], id="m")


def events_of(*events: RunEvent, legacy: bool = False) -> list[Told]:
    seen = told(frames_of([OPENED, *events]), legacy=legacy)
    check_order(seen)
    for event in seen:
        check_shape(event)
    return seen


def snapshot(state: Any, messages: bytes, legacy: bytes | None = None) -> Snapshot:
    return Snapshot(state, messages, messages if legacy is None else legacy)


@pytest.mark.requirement("AGUI-09")
def test_a_question_has_the_protocols_names_and_nothing_of_the_servers_own() -> None:
    assert wire_interrupt(BARE) == {"id": "i1", "reason": "input_required"}
    assert wire_interrupt(FULL) == {
        "id": "i2",
        "reason": "tool_call",
        "message": "May look run?",
        "toolCallId": "c",
        "responseSchema": {"type": "object"},
        "expiresAt": "2023-11-14T22:13:20Z",
        "metadata": {"toolName": "look", "arguments": {"a": None}},
        "subagentRunId": "r2",
    }
    assert WireInterrupt.model_validate(wire_interrupt(FULL)).subagent_run_id == "r2"


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize("legacy", [False, True])
def test_a_paused_run_closes_all_and_shows_the_thread_before_it_asks(legacy: bool) -> None:
    messages = hydrate(wire_rows([MessageEntry(CALLING)]), legacy=legacy)
    seen = events_of(
        TextDelta("m", "half"),
        snapshot({"n": 1}, messages),
        RunDone(RunEnd(EndReason.INTERRUPTED, interrupts=(BARE, FULL))),
        legacy=legacy,
    )
    assert [event["type"] for event in seen[-4:]] == [
        "TEXT_MESSAGE_END",
        "STATE_SNAPSHOT",
        "MESSAGES_SNAPSHOT",
        "RUN_FINISHED",
    ]
    assert (seen[-3]["snapshot"], seen[-2]["messages"]) == ({"n": 1}, json.loads(messages))
    asked = [wire_interrupt(BARE), wire_interrupt(FULL)]
    assert seen[-1]["outcome"] == {"type": "interrupt", "interrupts": asked}


@pytest.mark.requirement("AGUI-09", "AGUI-12")
def test_each_generation_gets_the_snapshot_that_it_can_read() -> None:
    image = Image(source=UrlSource(value="https://example.org/a.png"))
    rows = wire_rows([MessageEntry(tool_result_message("c", "draw", [Text(text="drawn"), image], id="r"))])
    event = snapshot(None, hydrate(rows, legacy=False), hydrate(rows, legacy=True))
    done = RunDone(RunEnd(EndReason.INTERRUPTED, interrupts=(BARE,)))
    current, legacy = events_of(event, done), events_of(event, done, legacy=True)
    assert (current[1]["snapshot"], legacy[1]["snapshot"]) == ({}, {})
    assert [part["type"] for part in current[2]["messages"][0]["content"]] == ["text", "image"]
    assert legacy[2]["messages"][0]["content"] == "drawn"


def test_a_paused_run_without_a_question_is_no_interrupt() -> None:
    assert "outcome" not in events_of(RunDone(RunEnd(EndReason.INTERRUPTED)))[-1]


@pytest.mark.requirement("AGUI-08")
def test_calls_that_wait_for_the_client_are_named_to_those_who_know_the_word() -> None:
    done = RunDone(RunEnd(EndReason.CLIENT_TOOLS, pending_calls=("c",)))
    current, legacy = [events_of(MessageDone(CALLING), done, legacy=legacy)[-1] for legacy in (False, True)]
    assert current["outcome"] == {"type": "success", "pendingToolCallIds": ["c"]}
    assert "outcome" not in legacy
    assert not {"TOOL_CALL_RESULT"} & {event["type"] for event in events_of(MessageDone(CALLING), done)}


@pytest.mark.parametrize("result", [0, False, "", [], {"a": None}])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_structured_answer_is_the_result_of_the_run(result: Any, legacy: bool) -> None:
    end = RunEnd(EndReason.DONE, result=result)
    assert events_of(RunDone(end), legacy=legacy)[-1]["result"] == result
    assert "result" not in events_of(RunDone(replace(end, result=None)))[-1]
    assert "result" not in events_of(RunDone(replace(end, reason=EndReason.STOP_REQUESTED)))[-1]


@pytest.mark.requirement("AGUI-08")
def test_results_of_calls_that_nobody_answered_follow_the_start() -> None:
    settled = tool_result_message("c", "look", "was not executed", is_error=True, id="r")
    opened = RunOpened("thread", "run", "assistant", (user_message("on", id="u"),), settled=(settled,))
    seen = told(frames_of([opened, ToolDone(settled), RunDone(RunEnd(EndReason.DONE))]))
    assert [event["type"] for event in seen].count("TOOL_CALL_RESULT") == 1
    assert (seen[1]["type"], seen[1]["messageId"], seen[1]["toolCallId"]) == ("TOOL_CALL_RESULT", "r", "c")
    assert seen[1]["metadata"]["isError"] is True
    assert [message["id"] for message in seen[0]["input"]["messages"]] == ["u"]


@pytest.mark.requirement("AGUI-05", "AGUI-08", "AGT-15")
@pytest.mark.parametrize("legacy", [False, True])
def test_a_client_gets_the_servers_metadata_on_its_own_result(legacy: bool) -> None:
    answer = tool_result_message("c", "look", "seen", id="r", sender_id="assistant")
    opened = RunOpened("thread", "run", "assistant", (answer, user_message("on", id="u")))
    seen = told(frames_of([opened, ToolDone(answer), RunDone(RunEnd(EndReason.DONE))]), legacy=legacy)
    check_order(seen)
    for event in seen:
        check_shape(event)
    assert "TOOL_CALL_RESULT" not in {event["type"] for event in seen}
    told_first = seen[0]["input"]["messages"]
    assert [(message["id"], message["role"]) for message in told_first] == [("r", "tool"), ("u", "user")]
    calling, result = json.loads(
        hydrate(wire_rows([MessageEntry(CALLING), MessageEntry(answer)]), legacy=legacy)
    )
    sent = {"id": "r", "role": "tool", "toolCallId": "c", "content": "seen"}
    for holds in ([calling, sent], [calling]):
        assert Client(holds).take(seen)[1] == result


@pytest.mark.requirement("AGUI-09")
def test_what_is_said_beside_an_answer_is_not_told_twice() -> None:
    said = user_message("and hurry", id="u", sender_id="ann")
    result = tool_result_message("c", "look", "seen", id="r")
    opened = RunOpened("thread", "run", "assistant", held=(said,))
    events: list[RunEvent] = [opened, ToolDone(result), Appended(MessageEntry(said))]
    stored = json.loads(hydrate(wire_rows([MessageEntry(m) for m in (CALLING, result, said)]), legacy=False))
    sender = [*stored[:1], {"id": "u", "role": "user", "content": "and hurry"}]
    for holds in (sender, stored[:1]):
        seen = told(frames_of([*events, RunDone(RunEnd(EndReason.DONE))]))
        assert Client(holds).take(seen) == stored
    assert [event["type"] for event in seen].count("TEXT_MESSAGE_CONTENT") == 0
