"""Joining a run in the middle: whoever does holds the same as one who was there from the beginning."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.events import RunEvent, RunOpened, StateChanged, ToolCallStarted
from app.agui.connect import connect_live, renamed
from app.agui.fold import Fold
from app.agui.hydrate import hydrate
from app.agui.translate import Translator
from app.clock import SystemClock
from app.runs.log_memory import MemoryLog
from tests.agui.order import check_order, check_shape, told
from tests.agui.reducer import Client
from tests.agui.requests import StillClock
from tests.agui.stories import AGENT, Story, stories, wire_rows


def logged(story: Story) -> MemoryLog:
    log = MemoryLog(1, 1, story.opened.state)
    translate = Translator(SystemClock()).translate
    for event in story.told():
        log.append(translate(event))
    return log


def before(story: Story, *, legacy: bool) -> list[dict[str, Any]]:
    return json.loads(hydrate(wire_rows(story.before), legacy=legacy))


@pytest.mark.requirement("AGUI-15", "LIVE-02")
@given(stories(), st.booleans(), st.data())
def test_whoever_joins_at_any_place_ends_with_what_is_held_by_one_who_was_there(
    story: Story, legacy: bool, data: st.DataObject
) -> None:
    events = [json.loads(frame) for frame in logged(story).frames(legacy=legacy)]
    there = Client(before(story, legacy=legacy))
    there.state = story.opened.state
    there.take(deepcopy(events))
    place = data.draw(st.integers(1, len(events) - 1))
    fold = Fold(before(story, legacy=legacy), story.opened.state)
    for event in events[:place]:
        fold.take(deepcopy(event))
    opening = told(connect_live("thread", "run", fold, clock=StillClock()), legacy=legacy)
    stream = [*opening, *events[place:]]
    check_order(stream)
    for event in stream:
        check_shape(event)
    partial = Client([*before(story, legacy=legacy)])
    partial.take(deepcopy(events[: data.draw(st.integers(0, place))]))
    for joiner in (Client(), partial):
        assert joiner.take(deepcopy(stream)) == there.messages
        assert joiner.state == there.state


@given(stories())
def test_a_fold_knows_the_messages_of_the_run_and_when_it_is_over(story: Story) -> None:
    log = logged(story)
    fold = Fold.of(log.frames(), before(story, legacy=False), story.opened.state)
    assert fold.is_over
    kinds = {event["type"] for event in fold.told_again()}
    assert kinds <= {"TOOL_CALL_RESULT"}
    assert {message["id"] for message in fold.messages()} - fold.message_ids == {
        entry.id for entry in story.before
    }
    assert not {entry.id for entry in story.before} & fold.message_ids


def test_state_that_cannot_be_patched_stays_as_it_is() -> None:
    fold = Fold((), {"a": 1})
    events: list[RunEvent] = [
        StateChanged([{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        StateChanged([{"op": "test", "path": "/a", "value": 3}], {"a": 2}),
        ToolCallStarted("m", "c", "look"),
    ]
    translate = Translator(SystemClock()).translate
    translate(RunOpened("thread", "run", AGENT))
    for event in events:
        for frame in told(translate(event)):
            fold.take(frame)
    assert fold.state == {"a": 2}
    assert [event["type"] for event in fold.told_again()] == ["TOOL_CALL_START"]


def test_the_last_event_is_renamed_where_it_names_a_run() -> None:
    finished = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": {"runId": "r"}}
    assert json.loads(renamed(json.dumps(finished).encode(), "s")) == {**finished, "runId": "s"}
    failed = b'{"type":"RUN_ERROR","message":"no"}'
    assert renamed(failed, "s") == failed
