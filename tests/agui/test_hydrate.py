"""Stored entries as a client's messages."""

import json
from typing import Any

import pytest
from ag_ui.core import Message as WireMessage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.agui.hydrate import RENDERER, WireRenderer, hydrate, render
from app.conversation.blocks import (
    Audio,
    Block,
    DataSource,
    Document,
    FileSource,
    Image,
    Reminder,
    ServerToolOutput,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    UrlSource,
    Video,
)
from app.conversation.entries import MessageEntry, StoredEntry
from app.conversation.messages import (
    Injected,
    Message,
    assistant_message,
    tool_result_message,
    user_message,
)
from app.store.adapter import WireRow
from tests.agui.stories import Story, stories, wire_rows

_MESSAGE: TypeAdapter[WireMessage] = TypeAdapter(WireMessage)


def shown(*messages: Message, legacy: bool = False) -> list[dict[str, Any]]:
    return json.loads(hydrate(wire_rows([MessageEntry(message) for message in messages]), legacy=legacy))


@given(stories(), st.booleans())
def test_hydrated_messages_are_the_protocols_own(story: Story, legacy: bool) -> None:
    for message in json.loads(hydrate(story.rows(), legacy=legacy)):
        model = _MESSAGE.validate_python(message)
        assert json.loads(model.model_dump_json(by_alias=True)) == message
        assert "createdAt" in message["metadata"]


@pytest.mark.requirement("MSG-09")
@given(stories(), st.booleans())
def test_no_reader_gets_a_reminder_or_an_injected_message(story: Story, legacy: bool) -> None:
    assert b"hush" not in hydrate(story.rows(), legacy=legacy)
    assert all("hush" not in render(entry) for entry in story.stored)


@given(stories(), st.booleans())
def test_stored_renderings_read_as_fresh_ones(story: Story, legacy: bool) -> None:
    unrendered = [WireRow(seq, "run", None, entry) for seq, entry in enumerate(story.stored)]
    assert json.loads(hydrate(story.rows(), legacy=legacy)) == json.loads(hydrate(unrendered, legacy=legacy))


def test_a_stored_rendering_is_joined_as_it_is() -> None:
    row = WireRow(1, "run", '[{"id":"m"}]', None)
    assert hydrate([row, row], legacy=False) == b'[{"id":"m"},{"id":"m"}]'
    assert hydrate([], legacy=False) == b"[]"
    assert WireRenderer().version == RENDERER


def test_an_unknown_time_is_null_under_its_key() -> None:
    old = user_message("hi", id="u").model_copy(update={"created_at": None})
    assert shown(old)[0]["metadata"] == {"createdAt": None}


def test_a_client_cannot_name_the_sender_or_the_time() -> None:
    claimed = user_message("hi", metadata={"senderId": "eve", "createdAt": "1970", "tab": 1})
    assert shown(claimed.model_copy(update={"created_at": None}))[0]["metadata"] == {
        "createdAt": None,
        "tab": 1,
    }


def test_a_message_with_calls_and_no_text_has_no_content() -> None:
    (message,) = shown(assistant_message([ToolCall(id="c", name="look", arguments="{}")]))
    assert "content" not in message
    assert message["toolCalls"] == [
        {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ]


def test_an_answer_of_reasoning_alone_is_still_an_answer() -> None:
    reasoning, answer = shown(assistant_message([Thinking(id="t", text="hm", encrypted="seal")], id="m"))
    assert (reasoning["id"], reasoning["content"], reasoning["encryptedValue"]) == ("t", "hm", "seal")
    assert (answer["id"], answer["content"]) == ("m", "")


@pytest.mark.requirement("AGUI-12")
@pytest.mark.parametrize("legacy", [False, True])
def test_media_of_every_kind_come_back_as_they_were_sent(legacy: bool) -> None:
    link = UrlSource(value="https://example.org/a", mime_type="x/y")
    data = DataSource(value="AAAA", mime_type="audio/wav")
    content: list[Block] = [
        Text(text="look", id="p0"),
        Image(source=link, id="p1", metadata={"filename": "a.png", "alt": None}),
        Audio(source=data),
        Video(source=UrlSource(value="https://example.org/v")),
        Document(source=link),
    ]
    at = {"type": "url", "value": "https://example.org/a", "mimeType": "x/y"}
    ids: list[dict[str, str]] = [{}, {}] if legacy else [{"id": "p0"}, {"id": "p1"}]
    assert shown(user_message(content, as_parts=True), legacy=legacy)[0]["content"] == [
        {"type": "text", "text": "look", **ids[0]},
        {"type": "image", "source": at, "metadata": {"filename": "a.png", "alt": None}, **ids[1]},
        {"type": "audio", "source": {"type": "data", "value": "AAAA", "mimeType": "audio/wav"}},
        {"type": "video", "source": {"type": "url", "value": "https://example.org/v"}},
        {"type": "document", "source": at},
    ]


@pytest.mark.requirement("AGUI-08")
def test_a_call_keeps_its_opaque_value() -> None:
    (message,) = shown(assistant_message([ToolCall(id="c", name="look", encrypted="seal")]))
    assert message["toolCalls"][0]["encryptedValue"] == "seal"


@pytest.mark.requirement("AGUI-12")
def test_content_comes_back_in_the_form_in_which_it_came() -> None:
    text: list[Block] = [Text(text="hi", id="p1")]
    assert shown(user_message("hi"))[0]["content"] == "hi"
    assert shown(user_message(text, as_parts=True))[0]["content"] == [
        {"type": "text", "text": "hi", "id": "p1"}
    ]


def test_a_reminder_beside_a_persons_words_leaves_them_a_string() -> None:
    content: list[Block] = [Text(text="hi"), Reminder(text="secret", origin="context")]
    assert shown(user_message(content))[0]["content"] == "hi"


@pytest.mark.parametrize("injected", [Injected.META, Injected.EPHEMERAL])
def test_injected_messages_show_nothing(injected: Injected) -> None:
    entries: list[StoredEntry] = [
        MessageEntry(user_message("secret", injected=injected)),
        MessageEntry(assistant_message("secret", injected=injected)),
        MessageEntry(tool_result_message("c", "look", "secret", injected=injected)),
    ]
    assert [render(entry) for entry in entries] == ["[]"] * 3
    assert hydrate(wire_rows(entries), legacy=False) == b"[]"


def test_blocks_of_a_later_version_are_passed_over() -> None:
    later = Unknown.model_validate({"type": "hologram", "secret": 1})
    assert shown(user_message([Text(text="hi"), later]))[0]["content"] == "hi"


def test_a_call_that_the_provider_ran_is_answered() -> None:
    call = ToolCall(
        id="c", name="search", server=True, output=ServerToolOutput(content={"hits": 2}, is_error=True)
    )
    answer, output = shown(assistant_message([call, Text(text="Two.")], id="m", sender_id="assistant"))
    assert (answer["id"], output["role"], output["toolCallId"]) == ("m", "tool", "c")
    assert json.loads(output["content"]) == {"hits": 2}
    assert (output["metadata"]["isError"], output["metadata"]["senderId"]) == (True, "assistant")


def test_reasoning_behind_a_call_stands_behind_its_result() -> None:
    content: list[Block] = [ToolCall(id="c", name="look"), Thinking(id="t", text="hm")]
    messages = shown(
        assistant_message(content, id="m"),
        user_message("injected", injected=Injected.META),
        tool_result_message("c", "look", "seen", id="r"),
        assistant_message("done", id="m2"),
    )
    assert [message["id"] for message in messages] == ["m", "r", "t", "m2"]


@pytest.mark.requirement("AGUI-12")
def test_older_clients_are_spared_what_they_cannot_read() -> None:
    image = Image(source=FileSource(value="file-1"))
    user = user_message([Text(text="look"), image], as_parts=True)
    result = tool_result_message("c", "draw", [Text(text="drawn"), image])
    assert [part["type"] for part in shown(user, legacy=True)[0]["content"]] == ["text"]
    assert [part["type"] for part in shown(user)[0]["content"]] == ["text", "image"]
    assert shown(result, legacy=True)[0]["content"] == "drawn"
    assert shown(result)[0]["content"][1]["type"] == "image"
