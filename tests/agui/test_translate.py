"""The live stream: legal on every path, in the protocol's own spelling, and equal to what is stored."""

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.events import (
    AgentEvent,
    MessageDone,
    RunDone,
    RunEvent,
    RunOpened,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolDone,
)
from app.agui.hydrate import hydrate
from app.agui.replay import replay
from app.agui.translate import Translator
from app.clock import SystemClock
from app.conversation.blocks import FileSource, Image, Text, Thinking, ToolCall, UrlSource
from app.conversation.messages import (
    Message,
    Role,
    StopReason,
    assistant_message,
    tool_result_message,
    user_message,
)
from app.conversation.outcomes import EndReason, RunEnd
from app.frames import Frame, Variants
from tests.agui.order import TERMINAL, Told, check_order, check_shape, told
from tests.agui.records import record
from tests.agui.reducer import Client
from tests.agui.stories import Story, stories, unruly, wire_rows

OPENED = RunOpened("thread", "run", "assistant")
DONE = RunDone(RunEnd.by(EndReason.DONE))


def frames_of(events: Iterable[RunEvent]) -> list[Frame]:
    translate = Translator(SystemClock()).translate
    return [frame for event in events for frame in translate(event)]


def run(*events: AgentEvent, legacy: bool = False) -> list[Told]:
    return told(frames_of([OPENED, *events, DONE]), legacy=legacy)


def kinds(events: Sequence[Told]) -> list[str]:
    return [event["type"] for event in events]


def whole(story: Story) -> list[Frame]:
    return frames_of(story.told())


def held_before(story: Story, *, legacy: bool) -> Client:
    """A client that holds what the thread held before the run, and the state that it told the server."""
    client = Client(json.loads(hydrate(wire_rows(story.before), legacy=legacy)))
    client.state = None if story.opened.state_differs else story.opened.state
    return client


@pytest.mark.requirement("AGUI-05", "AGUI-08", "AGUI-13", "AGUI-18")
@given(stories(), st.booleans())
def test_a_client_that_was_there_holds_what_hydration_gives(story: Story, legacy: bool) -> None:
    client = held_before(story, legacy=legacy)
    client.take(told(whole(story), legacy=legacy))
    assert client.messages == json.loads(hydrate(story.thread(), legacy=legacy))
    assert client.state == story.state.value


@pytest.mark.requirement("AGUI-05")
@given(stories(), st.booleans())
def test_a_snapshot_behind_the_stream_changes_nothing(story: Story, legacy: bool) -> None:
    client = held_before(story, legacy=legacy)
    client.take(told(whole(story), legacy=legacy))
    before = [dict(message) for message in client.messages]
    snapshot = json.loads(hydrate(story.thread(), legacy=legacy))
    assert client.take([{"type": "MESSAGES_SNAPSHOT", "messages": snapshot}]) == before


@pytest.mark.requirement("AGUI-05")
@given(stories())
def test_a_client_that_sent_the_messages_gets_the_servers_metadata_on_them(story: Story) -> None:
    said = (*story.opened.accepted, *story.opened.held)
    sent = [
        {"id": one.id, "role": "user", "content": "as sent", "metadata": {"createdAt": "mine", "kept": 1}}
        for one in said
        if isinstance(one, Message) and one.role is Role.USER
    ]
    seen = Client(sent).take(told(frames_of([story.opened, *story.events])))[: len(sent)]
    stored = {one["id"]: one for one in json.loads(hydrate(story.rows(), legacy=False))}
    assert [one["metadata"] for one in seen] == [{"kept": 1, **stored[one["id"]]["metadata"]} for one in sent]
    assert [one["content"] for one in seen] == ["as sent"] * len(sent)


@pytest.mark.requirement("AGUI-01", "AGUI-04", "AGUI-08")
@given(stories(), st.booleans())
def test_every_frame_is_spelled_as_the_protocols_library_spells_it(story: Story, legacy: bool) -> None:
    events = told(whole(story), legacy=legacy)
    check_order(events)
    for event in events:
        check_shape(event)


@pytest.mark.requirement("MSG-09")
@given(stories())
def test_no_frame_holds_a_reminder_or_an_injected_message(story: Story) -> None:
    frames = [*whole(story), *replay(record(story.end), story.stored)]
    assert not any("hush" in str(frame) for frame in frames)


@pytest.mark.requirement("AGUI-01")
@given(stories(), st.data())
def test_a_run_that_breaks_off_anywhere_is_closed_and_ended_once(story: Story, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(story.events)))
    events = [story.opened, *story.events[:cut], RunDone(story.end), *story.events[cut:], RunDone(story.end)]
    check_order(told(frames_of(events)))


@pytest.mark.requirement("AGUI-01", "AGUI-04")
@given(unruly, st.booleans())
def test_an_agent_that_keeps_no_order_still_gives_a_legal_stream(
    events: list[AgentEvent], legacy: bool
) -> None:
    seen = told(frames_of([OPENED, *events, DONE]), legacy=legacy)
    check_order(seen)
    for event in seen:
        check_shape(event)
    Client().take(seen)


@pytest.mark.requirement("AGUI-01")
def test_a_run_that_never_opened_ends_as_an_error_and_says_nothing_else() -> None:
    assert kinds(told(frames_of([TextDelta("m", "lost"), DONE, DONE]))) == ["RUN_ERROR"]


@pytest.mark.requirement("AGUI-01")
def test_the_first_event_names_the_run_and_what_was_accepted() -> None:
    message = user_message("hello", id="u", sender_id="ann", metadata={"senderId": "eve", "tab": 1})
    opened = RunOpened("thread", "run", "assistant", (message,), state={"a": 1}, state_differs=True)
    first, start, end, state, *_ = told(frames_of([opened, DONE]))
    metadata = first["input"]["messages"][0]["metadata"]
    assert (first["threadId"], first["runId"], first["protocolVersion"]) == ("thread", "run", "1.0")
    assert (first["input"]["tools"], first["input"]["context"]) == ([], [])
    assert (metadata["senderId"], metadata["tab"]) == ("ann", 1)
    assert (start["messageId"], start["role"], start["metadata"]) == ("u", "user", metadata)
    assert (end["type"], end["messageId"]) == ("TEXT_MESSAGE_END", "u")
    assert (state["type"], state["snapshot"]) == ("STATE_SNAPSHOT", {"a": 1})


def test_text_ends_before_its_call_and_the_message_closes_behind_it() -> None:
    blocks = [Text(text="Let me look."), ToolCall(id="c", name="look", arguments="{}")]
    message = assistant_message(blocks, id="m", sender_id="assistant", stop_reason=StopReason.TOOL_USE)
    events = run(
        TextDelta("m", "Let me "),
        TextDelta("m", "look."),
        ToolCallStarted("m", "c", "look"),
        ToolCallDelta("c", "{}"),
        ToolCallEnded("c"),
        MessageDone(message),
    )
    assert kinds(events)[1:-1] == [
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_END",
    ]
    assert "metadata" not in events[4]
    assert events[5]["parentMessageId"] == "m"
    assert events[8]["metadata"]["senderId"] == "assistant"


def test_text_ends_before_reasoning_that_interrupts_it() -> None:
    blocks = [Text(text="a"), Thinking(id="t", text="hm", created_at=1), Text(text="b")]
    events = run(
        TextDelta("m", "a"),
        ThinkingStarted("m", "t"),
        ThinkingDelta("t", "hm"),
        ThinkingEnded("t", 1),
        TextDelta("m", "b"),
        MessageDone(assistant_message(blocks, id="m")),
    )
    assert kinds(events).index("TEXT_MESSAGE_END") < kinds(events).index("REASONING_START")
    assert kinds(events)[-5:-1] == [
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]


def test_text_that_goes_on_behind_a_call_stays_one_message() -> None:
    blocks = [Text(text="a"), ToolCall(id="c", name="look"), Text(text="b")]
    events = run(
        TextDelta("m", "a"),
        ToolCallStarted("m", "c", "look"),
        ToolCallEnded("c"),
        TextDelta("m", "b"),
        MessageDone(assistant_message(blocks, id="m")),
    )
    (message,) = Client().take(events)
    assert message["content"] == "ab"


def test_an_assistant_message_is_closed_only_when_it_is_done() -> None:
    translate = Translator(SystemClock()).translate
    translate(OPENED)
    assert kinds(told(translate(TextDelta("m", "hello"))))[-1] == "TEXT_MESSAGE_CONTENT"
    assert kinds(told(translate(MessageDone(assistant_message("hello", id="m"))))) == ["TEXT_MESSAGE_END"]


def test_a_message_that_came_without_deltas_is_told_whole() -> None:
    (message,) = Client().take(run(MessageDone(assistant_message("all at once", id="m"))))
    assert message["content"] == "all at once"


def test_what_the_deltas_left_out_is_told_when_the_message_is_done() -> None:
    blocks = [Text(text="hello"), ToolCall(id="c", name="look", arguments='{"a":1}')]
    events = run(
        TextDelta("m", "he"),
        ToolCallStarted("m", "c", "look"),
        ToolCallDelta("c", '{"a"'),
        ToolCallEnded("c"),
        MessageDone(assistant_message(blocks, id="m")),
    )
    (message,) = Client().take(events)
    assert message["content"] == "hello"
    assert message["toolCalls"][0]["function"]["arguments"] == '{"a":1}'


@pytest.mark.requirement("AGUI-08")
def test_the_opaque_value_of_a_call_follows_the_call() -> None:
    call = ToolCall(id="c", name="look", arguments="{}", encrypted="seal")
    events = run(
        ToolCallStarted("m", "c", "look"),
        ToolCallDelta("c", "{}"),
        ToolCallEnded("c"),
        MessageDone(assistant_message([call], id="m")),
    )
    sealed = events[kinds(events).index("REASONING_ENCRYPTED_VALUE")]
    assert kinds(events).index("TOOL_CALL_END") < events.index(sealed)
    assert (sealed["subtype"], sealed["entityId"], sealed["encryptedValue"]) == ("tool-call", "c", "seal")
    assert Client().take(events)[0]["toolCalls"][0]["encryptedValue"] == "seal"


def test_reasoning_is_by_whoever_thought() -> None:
    events = run(ThinkingStarted("m", "t"), ThinkingEnded("t", 1, None, "expert"))
    assert Client().take(events)[0]["metadata"]["senderId"] == "expert"


def test_an_answer_that_was_cut_says_so() -> None:
    cut = assistant_message("half", id="m", stop_reason=StopReason.ABORTED)
    (message,) = Client().take(run(TextDelta("m", "half"), MessageDone(cut)))
    assert message["metadata"]["stopReason"] == "aborted"


def test_a_failed_tool_says_so() -> None:
    failed = tool_result_message("c", "look", "no such thing", is_error=True)
    (result,) = Client().take(run(ToolDone(failed)))
    assert result["metadata"]["isError"] is True


@pytest.mark.requirement("AGUI-01")
def test_a_crash_in_the_middle_of_everything_closes_everything() -> None:
    crash = RunDone(RunEnd.by(EndReason.INTERNAL_ERROR))
    events = told(
        frames_of(
            [
                OPENED,
                ThinkingStarted("m", "t"),
                ThinkingDelta("t", "hm"),
                ToolCallStarted("m", "c", "look"),
                TextDelta("m", "half"),
                crash,
            ]
        )
    )
    check_order(events)
    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "INTERNAL_ERROR")


def test_a_stopped_run_is_cancelled_for_one_generation_and_finished_for_the_other() -> None:
    frame = frames_of([OPENED, RunDone(RunEnd.by(EndReason.STOP_REQUESTED))])[-1]
    (current,), (legacy,) = told([frame]), told([frame], legacy=True)
    assert current["outcome"] == {"type": "cancelled"}
    assert (legacy["type"], legacy["metadata"]) == ("RUN_FINISHED", {"finishReason": "cancelled"})
    assert "outcome" not in legacy


@pytest.mark.parametrize("reason", list(EndReason))
def test_every_reason_has_one_terminal_event(reason: EndReason) -> None:
    events = told(frames_of([OPENED, RunDone(RunEnd.by(reason))]))
    assert [kind for kind in kinds(events) if kind in TERMINAL] == kinds(events)[-1:]
    if events[-1]["type"] == "RUN_ERROR":
        assert events[-1]["code"] == reason.value.upper()
        assert events[-1]["message"]


def test_older_clients_get_no_bytes_that_a_provider_holds() -> None:
    image = Image(source=FileSource(value="file-1"))
    link = Image(source=UrlSource(value="https://example.org/a.png"))
    message = user_message([image, link], id="u", as_parts=True)
    frame = frames_of([RunOpened("thread", "run", "assistant", (message,))])[0]
    (current,), (legacy,) = told([frame]), told([frame], legacy=True)
    assert [part["source"]["type"] for part in current["input"]["messages"][0]["content"]] == ["file", "url"]
    assert [part["source"]["type"] for part in legacy["input"]["messages"][0]["content"]] == ["url"]


def test_a_result_with_an_image_is_parts_for_one_generation_and_text_for_the_other() -> None:
    image = Image(source=UrlSource(value="https://example.org/a.png"))
    result = tool_result_message("c", "draw", [Text(text="drawn"), image])
    assert run(ToolDone(result))[1]["content"][1]["type"] == "image"
    assert run(ToolDone(result), legacy=True)[1]["content"] == "drawn"


def test_frames_of_deltas_are_the_same_bytes_for_every_client() -> None:
    frames = frames_of([OPENED, TextDelta("m", "a"), ThinkingStarted("m", "t"), ThinkingDelta("t", "b")])
    assert not any(isinstance(frame, Variants) for frame in frames)


@pytest.mark.parametrize("text", ['"quoted" \\ \n \r \t', "\u2028\u2029", "😀", "\ud800", "\x7f\x01"])
def test_any_text_is_one_line_of_json(text: str) -> None:
    frame = frames_of([OPENED, TextDelta('m"\n', text)])[-1]
    assert isinstance(frame, bytes)
    assert b"\n" not in frame
    assert b"\r" not in frame
    event = json.loads(frame)
    assert (event["messageId"], event["delta"]) == ('m"\n', text.replace("\ud800", "\ufffd"))
