"""An application's records, and what passes by: how clients get them, live and from storage."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from app.agent.events import Appended, RunDone, RunOpened, StateChanged, ToolProgress
from app.agui.hydrate import hydrate, render
from app.agui.translate import Translator
from app.clock import SystemClock
from app.conversation.blocks import ToolCall
from app.conversation.entries import CustomEntry, MessageEntry, StoredEntry, TransientEntry
from app.conversation.messages import assistant_message, tool_result_message, user_message
from app.conversation.outcomes import EndReason, RunEnd
from tests.agui.order import told
from tests.agui.reducer import Client
from tests.agui.stories import wire_rows
from tests.agui.test_translate import OPENED, frames_of, run

NOTE = CustomEntry("note", {"text": "kept"}, created_at=0, sender_id="ann", id="e1")
ACTIVITY = {
    "role": "activity",
    "id": "e1",
    "activityType": "note",
    "content": {"text": "kept"},
    "metadata": {"createdAt": "1970-01-01T00:00:00Z", "senderId": "ann"},
}


def shown(*entries: StoredEntry, legacy: bool = False) -> list[dict[str, Any]]:
    return json.loads(hydrate(wire_rows(entries), legacy=legacy))


@pytest.mark.requirement("AGT-11", "AGUI-08", "AGUI-13")
@pytest.mark.parametrize("legacy", [False, True])
def test_a_record_is_the_same_activity_live_and_hydrated(legacy: bool) -> None:
    assert Client().take(run(Appended(NOTE), legacy=legacy)) == [ACTIVITY]
    assert shown(NOTE, legacy=legacy) == [ACTIVITY]
    assert json.loads(render(NOTE)) == [ACTIVITY]


@pytest.mark.requirement("AGT-11", "AGUI-13")
@pytest.mark.parametrize("value", [None, 0, "text", [1, {"a": None}]])
def test_a_value_that_is_no_object_stands_in_one(value: JsonValue) -> None:
    entry = CustomEntry("note", value, id="e1")
    (activity,) = shown(entry)
    assert activity["content"] == {"value": value}
    assert activity["metadata"] == {"createdAt": None}
    assert Client().take(run(Appended(entry))) == [activity]


@pytest.mark.requirement("AGT-11")
def test_records_of_a_turn_stand_among_its_messages_where_they_were_put() -> None:
    first, last = user_message("hello", id="u1"), user_message("and", id="u2")
    opened = RunOpened("thread", "run", "assistant", (first, NOTE, last))
    messages = Client().take(told(frames_of([opened, RunDone(RunEnd(EndReason.DONE))])))
    assert messages == shown(MessageEntry(first), NOTE, MessageEntry(last))
    assert messages[1] == ACTIVITY


@pytest.mark.requirement("AGUI-05", "AGUI-08")
def test_a_record_of_a_running_tool_stands_behind_the_results() -> None:
    calls = [ToolCall(id="c1", name="look"), ToolCall(id="c2", name="look")]
    entries: list[StoredEntry] = [
        MessageEntry(assistant_message([*calls], id="m")),
        MessageEntry(tool_result_message("c1", "look", "a", id="r1")),
        NOTE,
        MessageEntry(tool_result_message("c2", "look", "b", id="r2")),
        MessageEntry(assistant_message("done", id="m2")),
    ]
    assert [message["id"] for message in shown(*entries)] == ["m", "r1", "r2", "e1", "m2"]


def test_words_that_look_like_an_activity_are_not_taken_for_one() -> None:
    user = user_message('{"role":"activity"', id="u", metadata={"role": "activity"})
    entries = [MessageEntry(user), MessageEntry(tool_result_message("c", "look", "seen", id="r"))]
    assert [message["id"] for message in shown(*entries)] == ["u", "r"]


@pytest.mark.requirement("AGT-12")
def test_a_passing_record_is_told_and_held_by_nobody() -> None:
    events = run(Appended(TransientEntry("flash", None)))
    assert {**events[1], "timestamp": 0} == {"type": "CUSTOM", "name": "flash", "value": None, "timestamp": 0}
    assert Client().take(events) == []


@pytest.mark.requirement("AGUI-08")
def test_a_record_is_told_once() -> None:
    assert [event["type"] for event in run(Appended(NOTE), Appended(NOTE))].count("ACTIVITY_SNAPSHOT") == 1


@pytest.mark.requirement("AGUI-08")
def test_progress_names_its_call_and_leaves_out_what_is_not_known() -> None:
    short, long = run(ToolProgress("c", "dig", 1, 0.5), ToolProgress("c", "dig", 2, 3, 4.0, "deeper"))[1:3]
    known = {"toolCallId": "c", "toolName": "dig"}
    assert (short["type"], short["name"]) == ("CUSTOM", "tool_progress")
    assert short["value"] == {**known, "sequence": 1, "progress": 0.5}
    assert long["value"] == {**known, "sequence": 2, "progress": 3, "total": 4.0, "message": "deeper"}


@pytest.mark.requirement("AGUI-18")
def test_a_change_of_the_state_goes_out_as_the_operations_it_was_made_of() -> None:
    patch: list[dict[str, JsonValue]] = [
        {"op": "replace", "path": "", "value": {"a": 1}},
        {"op": "move", "from": "/a", "path": "/b"},
    ]
    event = run(StateChanged(patch, {"b": 1}))[1]
    assert (event["type"], event["delta"]) == ("STATE_DELTA", patch)


@pytest.mark.requirement("AGUI-18")
@pytest.mark.parametrize("path", ["a", "/~2", None])
def test_operations_that_the_protocol_cannot_carry_give_way_to_the_whole_state(path: JsonValue) -> None:
    event = run(StateChanged([{"op": "add", "path": path, "value": 1}], {"a": 1}))[1]
    assert (event["type"], event["snapshot"]) == ("STATE_SNAPSHOT", {"a": 1})


@pytest.mark.requirement("AGUI-08")
def test_a_change_of_nothing_is_not_told() -> None:
    translate = Translator(SystemClock()).translate
    translate(OPENED)
    assert not translate(StateChanged([], {}))
