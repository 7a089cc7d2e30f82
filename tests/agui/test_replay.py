"""A finished run told again from storage."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.events import RunDone, RunOpened
from app.agui.hydrate import hydrate
from app.agui.replay import replay
from app.agui.translate import Translator
from app.clock import SystemClock
from app.conversation.blocks import ToolCall
from app.conversation.entries import CustomEntry, MessageEntry, StoredEntry
from app.conversation.interrupts import Interrupt
from app.conversation.messages import Injected, assistant_message, tool_result_message, user_message
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from tests.agui.order import check_order, check_shape, told
from tests.agui.records import record
from tests.agui.reducer import Client
from tests.agui.stories import Story, stories


@given(stories(), st.booleans())
def test_a_fresh_client_ends_with_the_messages_of_one_who_was_there(story: Story, legacy: bool) -> None:
    events = told(replay(record(story.end), story.stored), legacy=legacy)
    check_order(events)
    for event in events:
        check_shape(event)
    client = Client()
    assert client.take(events) == json.loads(hydrate(story.rows(), legacy=legacy))
    assert client.state == {"n": 1}


@given(stories(), st.booleans())
def test_a_replay_ends_as_the_run_did(story: Story, legacy: bool) -> None:
    translate = Translator(SystemClock()).translate
    translate(RunOpened("thread", "run", "assistant"))
    (live,) = told(translate(RunDone(story.end)), legacy=legacy)
    again = told(replay(record(story.end), story.stored), legacy=legacy)[-1]
    assert {**live, "timestamp": 0} == {**again, "timestamp": 0}


@given(stories())
def test_a_replay_is_the_same_whenever_it_is_made(story: Story) -> None:
    run = record(story.end)
    assert replay(run, story.stored) == replay(run, story.stored)


def test_each_message_is_one_content_event() -> None:
    entries = [MessageEntry(user_message("hi")), MessageEntry(assistant_message("a long answer"))]
    events = told(replay(record(RunEnd.by(EndReason.DONE)), entries))
    assert [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"] == [
        "a long answer"
    ]


def test_what_was_injected_stays_untold() -> None:
    entries = [
        MessageEntry(user_message("hi")),
        MessageEntry(user_message("hush", injected=Injected.META)),
        MessageEntry(assistant_message("hello")),
        MessageEntry(user_message("hush", injected=Injected.META)),
    ]
    assert not any(
        b"hush" in str(frame).encode() for frame in replay(record(RunEnd.by(EndReason.DONE)), entries)
    )


def test_a_reason_of_a_later_version_ends_by_its_status() -> None:
    stopped = record(RunEnd(EndReason.DONE), status=RunStatus.STOPPED, reason="beamed_up")
    failed = record(RunEnd(EndReason.DONE), status=RunStatus.FAILED, reason="beamed_up")
    assert told(replay(stopped, []))[-1]["outcome"] == {"type": "cancelled"}
    assert told(replay(failed, []))[-1]["code"] == "INTERNAL_ERROR"


ASKED = RunEnd(EndReason.INTERRUPTED, interrupts=(Interrupt(id="i1", reason="tool_call", call_id="c"),))


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize("legacy", [False, True])
def test_questions_are_told_again_as_long_as_they_are_open(legacy: bool) -> None:
    run = record(ASKED)
    asked = told(replay(run, []), legacy=legacy)[-1]["outcome"]
    assert [interrupt["id"] for interrupt in asked["interrupts"]] == ["i1"]
    assert "outcome" not in told(replay(replace(run, resumed_by="later"), []), legacy=legacy)[-1]


def test_calls_that_waited_for_the_client_are_named_again() -> None:
    calls = [ToolCall(id="c1", name="look"), ToolCall(id="c2", name="look")]
    entries = [
        MessageEntry(assistant_message([*calls])),
        MessageEntry(tool_result_message("c1", "look", "a")),
    ]
    run = record(RunEnd(EndReason.CLIENT_TOOLS))
    assert told(replay(run, entries))[-1]["outcome"]["pendingToolCallIds"] == ["c2"]
    assert "outcome" not in told(replay(run, entries), legacy=True)[-1]


@pytest.mark.requirement("AGT-11", "AGT-12")
def test_a_run_that_opened_with_results_and_records_begins_with_them() -> None:
    entries: list[StoredEntry] = [
        MessageEntry(tool_result_message("c1", "look", "a", id="r1")),
        CustomEntry("note", 1, id="e1"),
        MessageEntry(tool_result_message("c2", "look", "b", id="r2")),
        MessageEntry(user_message("hush", injected=Injected.META)),
        MessageEntry(user_message("hi", id="u")),
        MessageEntry(assistant_message("hello", id="m")),
    ]
    started = told(replay(record(RunEnd(EndReason.DONE)), entries))[0]
    assert [message["id"] for message in started["input"]["messages"]] == ["r1", "r2", "e1", "u"]


def test_a_structured_answer_is_told_again() -> None:
    assert told(replay(record(RunEnd(EndReason.DONE, result=[1])), []))[-1]["result"] == [1]
