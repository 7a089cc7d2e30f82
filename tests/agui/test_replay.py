"""A finished run told again from storage."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.agent.events import RunDone
from app.agui.hydrate import hydrate
from app.agui.replay import replay
from app.agui.translate import Translator
from app.clock import SystemClock
from app.conversation.entries import MessageEntry
from app.conversation.messages import Injected, assistant_message, user_message
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
    translate(story.opened)
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
