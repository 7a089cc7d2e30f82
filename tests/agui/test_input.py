"""Reading RunAgentInput: what is refused, by which name, and what is tolerated."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.prompt import ToolDefinition
from app.agui.input import RunInput, read_run_input
from app.agui.options import Options
from app.agui.resume import Reply
from app.agui.said import MOST_MESSAGES
from app.conversation.blocks import DataSource, Document, FileSource, Image, UrlSource
from app.conversation.ids import is_id
from app.errors import InvalidInput
from tests.agui.requests import assistant, body, tool, user

SECRET = "s3cr3t"
URL = {"type": "url", "value": "https://example.org/a.png"}


def refusal(request: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_run_input(request)
    return caught.value


def conversation(**members: Any) -> dict[str, Any]:
    return body(user("u"), forwardedProps={"conversation": members})


@pytest.mark.requirement("AGUI-16")
@pytest.mark.parametrize(
    ("request_body", "field"),
    [
        ([], "body"),
        ("text", "body"),
        ({}, "threadId"),
        ({"threadId": "t", "messages": []}, "runId"),
        ({"threadId": "t", "runId": "r"}, "messages"),
        ({"threadId": "t", "runId": "r", "messages": None}, "messages"),
        ({"threadId": "t", "runId": "r", "messages": {SECRET: 1}}, "messages"),
        ({"threadId": 7, "runId": "r", "messages": []}, "threadId"),
        (body(threadId=""), "threadId"),
        (body(runId="a/b"), "runId"),
        (body(runId=".."), "runId"),
        (body(parentRunId="x" * 201), "parentRunId"),
        (body(protocolVersion=1), "protocolVersion"),
        (body(context=[{"description": "d"}]), "context/0/value"),
        (body(context=[{"description": "d", "value": [SECRET]}]), "context/0/value"),
        (body(tools=[{"name": "t"}]), "tools/0/description"),
        (body(resume=[{"interruptId": "i", "status": SECRET}]), "resume/0/status"),
        (body(resume=[{"status": "resolved"}]), "resume/0/interruptId"),
        (body(resume={"interruptId": "i", "status": "resolved"}), "resume"),
        (body(resume=[{"interruptId": "i", "status": "resolved", "metadata": 1}]), "resume/0/metadata"),
        (body(tools=[{"name": "t", "description": "d", "parameters": [SECRET]}]), "tools/0/parameters"),
        (body(tools=[{"name": " ", "description": "d"}]), "tools/0/name"),
        (body(SECRET), "messages/0"),
        (body(user("u"), {"id": "x", "content": "hi"}), "messages/1/role"),
        (body(user("u"), {"id": "x", "role": SECRET, "content": "hi"}), "messages/1/role"),
        (body({"id": "x", "role": ["user"], "content": "hi"}), "messages/0/role"),
        (body({"role": "user", "content": "hi"}), "messages/0/id"),
        (body({**user("u"), "id": 5}), "messages/0/id"),
        (body(user("a#b")), "messages/0/id"),
        (body(user("u", None)), "messages/0/content"),
        (body(user("u", 5)), "messages/0/content"),
        (body({"id": "u", "role": "user"}), "messages/0/content"),
        (body(user("u", [{"text": "no type"}])), "messages/0/content/0"),
        (body(user("u", [SECRET])), "messages/0/content/0"),
        (body(user("u", [{"type": "text"}])), "messages/0/content/0/text"),
        (body(user("u", [{"type": "text", "text": "a"}, {"type": "image"}])), "messages/0/content/1/source"),
        (body(user("u", [{"type": "image", "source": {"type": SECRET}}])), "messages/0/content/0/source"),
        (
            body(user("u", [{"type": "new"}, {"type": "image", "source": {"type": "data", "value": "AA"}}])),
            "messages/0/content/1/source/mimeType",
        ),
        (body(user("u", [{"type": "binary", "data": "AA"}])), "messages/0/content/0/mimeType"),
        (body(user("u", [{"type": "binary", "mimeType": "image/png"}])), "messages/0/content/0/source"),
        (body(user("u", metadata=[])), "messages/0/metadata"),
        (body(assistant("a", content=["list"])), "messages/0/content"),
        (body({"id": "t", "role": "tool", "content": "x"}), "messages/0/toolCallId"),
        (body({"id": "t", "role": "tool", "toolCallId": "c"}), "messages/0/content"),
        (body(tool("t", content=None)), "messages/0/content"),
        (body(tool("t", content=[{"type": "text"}])), "messages/0/content/0/text"),
        (body(tool("t", error=[SECRET])), "messages/0/error"),
        (
            body(assistant("a", toolCalls=[{"id": "c", "type": "function"}])),
            "messages/0/toolCalls/0/function",
        ),
        (conversation(busy="queue"), "forwardedProps/conversation/busy"),
        (conversation(busy=SECRET), "forwardedProps/conversation/busy"),
        (conversation(onDisconnect="wait"), "forwardedProps/conversation/onDisconnect"),
        (conversation(previousRunId="a/b"), "forwardedProps/conversation/previousRunId"),
        (conversation(previousRunId=7), "forwardedProps/conversation/previousRunId"),
        (conversation(groupId="a/b"), "forwardedProps/conversation/groupId"),
        (conversation(parentThreadId=7), "forwardedProps/conversation/parentThreadId"),
        (conversation(hidden="true"), "forwardedProps/conversation/hidden"),
        (body(forwardedProps={"conversation": SECRET}), "forwardedProps/conversation"),
    ],
)
def test_bad_input_is_refused_by_the_name_of_its_field(request_body: Any, field: str) -> None:
    error = refusal(request_body)
    assert error.field == field
    assert SECRET not in error.public


@pytest.mark.requirement("AGUI-16")
def test_too_many_messages_are_refused() -> None:
    assert refusal(body(*[user("u")] * (MOST_MESSAGES + 1))).field == "messages"


@pytest.mark.requirement("AGUI-16")
def test_a_refusal_stops_at_the_first_name_that_is_the_clients_own() -> None:
    error = refusal(
        body(tools=[{"name": "t", "description": "d", "metadata": {SECRET: 1}, "parameters": 5}, 7])
    )
    assert error.field == "tools/1"


@pytest.mark.requirement("AGUI-16")
def test_unknown_members_and_null_optionals_are_tolerated() -> None:
    read = read_run_input(
        body(
            user("u", name=None, metadata=None, mood="fine"),
            {**assistant("a"), "content": None, "toolCalls": None},
            weather="fair",
            parentRunId=None,
            state=None,
            tools=None,
            context=None,
            forwardedProps=None,
            resume=None,
            protocolVersion=None,
        )
    )
    assert [said.role for said in read.messages] == ["user", "assistant"]
    assert read == read_run_input(body(user("u"), {"id": "a", "role": "assistant"}))
    assert read.legacy


def test_python_spellings_are_read_too() -> None:
    read = read_run_input({"thread_id": "t", "run_id": "r", "messages": [], "protocol_version": "1.0"})
    assert (read.thread_id, read.run_id, read.legacy) == ("t", "r", False)


@pytest.mark.requirement("AGUI-16")
def test_parts_of_an_unknown_type_are_left_out_and_counted() -> None:
    parts = [{"type": "hologram"}, {"type": "text", "text": "a"}, {"type": "scent", "text": 5}]
    for said in read_run_input(body(user("u", parts), tool("t", content=parts))).messages:
        assert said.dropped == 2
        assert [block.type for block in said.blocks] == ["text"]
        assert said.places == (1,)


@pytest.mark.parametrize(
    ("given_part", "block"),
    [
        (
            {"mimeType": "image/png", "data": "AAAA", "filename": "a.png"},
            Image(source=DataSource(value="AAAA", mime_type="image/png"), metadata={"filename": "a.png"}),
        ),
        (
            {"mimeType": "application/pdf", "url": "https://example.org/a"},
            Document(source=UrlSource(value="https://example.org/a", mime_type="application/pdf")),
        ),
        (
            {"mime_type": "image/png", "id": "f1"},
            Image(source=FileSource(value="f1", mime_type="image/png")),
        ),
    ],
)
def test_the_retired_binary_part_becomes_what_replaced_it(given_part: dict[str, Any], block: Any) -> None:
    read = read_run_input(body(user("u", [{"type": "binary", **given_part}])))
    assert read.messages[0].blocks == (block,)


def test_parts_keep_their_ids_and_metadata() -> None:
    part = {"type": "image", "id": "p", "source": URL, "metadata": {"a": None}, "extra": 1}
    (block,) = read_run_input(body(user("u", [part]))).messages[0].blocks
    assert block == Image(id="p", source=UrlSource(value=URL["value"]), metadata={"a": None})


def test_wishes_about_the_conversation_are_read() -> None:
    given_options = conversation(
        groupId="g",
        parentThreadId="p",
        hidden=True,
        busy="reject",
        onDisconnect="cancel",
        previousRunId="head",
        unknown=1,
    )
    assert read_run_input(given_options).options == Options("g", "p", True, "reject", "cancel", "head")
    nothing = conversation(groupId=None, hidden=None, busy=None, previousRunId=None)
    assert read_run_input(nothing).options == Options()
    assert read_run_input(body(user("u"), forwardedProps=["mine"])).options == Options()


def test_calls_and_their_results_are_read() -> None:
    made, answered = read_run_input(
        body(assistant("a", "c1", "c2"), tool("t", "c1", "", error="no"))
    ).messages
    assert made.calls == ("c1", "c2")
    assert (answered.calls, answered.error) == (("c1",), "no")


def test_tools_of_the_client_are_told_to_a_model_once_each() -> None:
    schema: dict[str, Any] = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [
        {"name": "map", "description": "Shows.", "parameters": schema},
        {"name": "map", "description": "again"},
        {"name": "ring", "description": "Rings."},
    ]
    assert read_run_input(body(tools=tools)).client_tools == (
        ToolDefinition("map", "Shows.", {"type": "object", **schema}),
        ToolDefinition("ring", "Rings.", {"type": "object", "properties": {}}),
    )


@pytest.mark.requirement("AGUI-09")
def test_answers_are_read_in_the_protocols_shape_before_the_older_one() -> None:
    older = {"command": {"resume": [{"toolCallId": "c", "approved": True}, SECRET, {"approved": True}]}}
    resume = [
        {"interruptId": "i1", "status": "resolved", "payload": {"approved": False}},
        {"interruptId": "i2", "status": "cancelled"},
    ]
    assert read_run_input(body(resume=resume, forwardedProps=older)).replies == (
        Reply("resume/0", "i1", {"approved": False}, False),
        Reply("resume/1", "i2", None, True),
    )
    replies = read_run_input(body(forwardedProps=older)).replies
    assert [(reply.field, reply.target) for reply in replies] == [
        ("forwardedProps/command/resume/0", "c"),
        ("forwardedProps/command/resume/1", ""),
        ("forwardedProps/command/resume/2", ""),
    ]


@pytest.mark.parametrize("command", [None, 7, "go", [], {}, {"resume": None}, {"other": {"resume": 1}}])
def test_a_command_of_somebody_elses_is_no_answer(command: Any) -> None:
    assert read_run_input(body(forwardedProps={"command": command})).replies == ()


def test_each_id_is_asked_for_once() -> None:
    assert read_run_input(body(user("a"), user("b"), user("a"))).entry_ids() == ["a", "b"]


@pytest.mark.requirement("SEC-06")
@pytest.mark.parametrize(
    "text", ["", ".", "..", "a/b", "a?b", "a#b", "a\x1fb", "a\x85b", "\ud800", "x" * 201]
)
def test_what_cannot_stand_in_a_path_is_no_id(text: str) -> None:
    assert not is_id(text)


@pytest.mark.requirement("SEC-06")
@pytest.mark.parametrize("text", ["a", "...", "x" * 200, "😀" * 200, "call:tool", "a b", "%2F", "é"])
def test_odd_but_harmless_ids_are_ids(text: str) -> None:
    assert is_id(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(["user", "tool", "text", "image", "url", "data", "resolved"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "role", "content", "type", "source", "value", "metadata", "name", "odd"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
members = st.sampled_from(
    ["threadId", "runId", "messages", "state", "tools", "context", "forwardedProps", "resume", "parentRunId"]
)


@pytest.mark.requirement("AGUI-16")
@given(st.dictionaries(members, json_values), st.lists(json_values, max_size=3))
def test_any_json_is_read_or_refused_in_words_of_ours(
    request_body: dict[str, Any], messages: list[Any]
) -> None:
    for candidate in (request_body, {**body(), "messages": messages}, {**body(), **request_body}):
        with contextlib.suppress(InvalidInput):
            assert isinstance(read_run_input(candidate), RunInput)
