"""Hundreds of malformed requests: each gets a clear 4xx that names the field, and nothing is stored."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.services.chat import Chat, OpenChat

GOOD: dict[str, Any] = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "u1", "role": "user", "content": "hi"}],
}
ODD: list[Any] = [
    0,
    1,
    -1,
    1.5,
    True,
    False,
    [],
    [[]],
    {},
    {"a": 1},
    [None],
    ["x"],
    "",
    "a/b",
    "a?b",
    "a#b",
    ".",
    "..",
    "x" * 201,
    "tab\tid",
    "\x7f",
    2**62,
]
TEXT_FIELDS = ("threadId", "runId", "parentRunId")
RAW = [
    b"",
    b" ",
    b"null",
    b"true",
    b"1",
    b'"text"',
    b"[]",
    b"[{}]",
    b"{}",
    b"{",
    b"}",
    b"[",
    b'{"threadId"',
    b'{"threadId":}',
    b"{'threadId':'t'}",
    b'{"threadId":"t",}',
    b'{"threadId":"t"}{"threadId":"t"}',
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b'{"threadId":"\xed\xa0\x80"}',
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'{"a":01}',
    b'{"a":+1}',
    b'{"a":.5}',
    b'{"a":1.}',
    b'{"a":0x1}',
    b'{"a":1e999}',
    b'{"a":"\x01"}',
    b'{"a":"\\x41"}',
    b'{"a":"\\u12"}',
    b"/* comment */ {}",
    b"{a:1}",
    b"undefined",
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"[" * 100_000,
]


def with_field(name: str, value: Any) -> dict[str, Any]:
    return {**GOOD, name: value}


def with_message(**changed: Any) -> dict[str, Any]:
    return with_field("messages", [{**GOOD["messages"][0], **changed}])


def text_at(path: str, text: str) -> bytes:
    """A body with raw JSON text at a place."""
    marked = with_message(content="@@") if path == "content" else with_field(path, "@@")
    return json.dumps(marked).replace('"@@"', text).encode()


def missing() -> Iterator[dict[str, Any]]:
    for name in GOOD:
        yield {key: value for key, value in GOOD.items() if key != name}
    for name in GOOD["messages"][0]:
        message = {key: value for key, value in GOOD["messages"][0].items() if key != name}
        yield with_field("messages", [message])


def wrong_values() -> Iterator[dict[str, Any]]:
    for name in TEXT_FIELDS:
        for value in [*ODD, *([None] if name != "parentRunId" else [])]:
            yield with_field(name, value)
    for value in [None, *ODD]:
        yield with_field("messages", value)
        yield with_field("messages", [value])
        yield with_message(id=value)
        yield with_message(role=value)
    contents: list[Any] = [None, 0, 1.5, True, {}, {"a": 1}, [], [[]], [None], ["x"], "", "  \n "]
    for value in contents:
        yield with_message(content=value)


def wrong_parts() -> Iterator[dict[str, Any]]:
    sources: list[Any] = [
        None,
        7,
        "x",
        [],
        {},
        {"type": "data"},
        {"type": "data", "value": "aGk="},
        {"type": "data", "value": 7, "mimeType": "image/png"},
        {"type": "data", "value": "not base64!", "mimeType": "image/png"},
        {"type": "url"},
        {"type": "url", "value": None},
        {"type": "file"},
        {"type": "other", "value": "x"},
        {"type": "data", "value": "aGk=", "mimeType": "image/png"},  # sound, but the model takes no media
    ]
    for kind in ("image", "audio", "video", "document"):
        for source in sources:
            yield with_message(content=[{"type": "text", "text": "look"}, {"type": kind, "source": source}])
    for part in ({"type": "text"}, {"type": "text", "text": 7}, {"type": "text", "text": None}):
        yield with_message(content=[part])
    for part in ({"type": "hologram", "x": 1}, {"type": 7}, {"kind": "text"}):
        yield with_message(content=[part])


def wrong_extras() -> Iterator[dict[str, Any]]:
    odd: list[Any] = [0, "x", True, {"a": 1}, [7], [{}]]
    for value in (*odd, [{"description": "d"}], [{"description": 1, "value": "v"}]):
        yield with_field("context", value)
    for value in (*odd, [{"name": "n"}], [{"name": 1, "description": "d"}]):
        yield with_field("tools", value)
    for value in (*odd, [{"interruptId": "i", "status": "maybe"}]):
        yield with_field("resume", value)
    yield with_field("tools", [{"name": "n", "description": "d"}] * 1_001)
    yield with_field("context", [{"description": "d", "value": "v"}] * 1_001)
    yield with_field("state", {"text": "x" * 1_100_000})
    yield with_message(id="think_" + "0" * 32)
    yield with_message(id="msg_1:output:0")
    yield with_field("tools", [{"name": "n", "description": "d", "parameters": [1]}])
    yield with_field("tools", [{"name": "", "description": "d"}])
    yield with_field("resume", [{"interruptId": 7, "status": "resolved"}])
    yield with_field("resume", [{"interruptId": "i", "status": "resolved"}] * 1_001)
    results: list[Any] = [None, 7, {}, [7], [{"type": "text"}]]
    for value in results:
        yield with_field("messages", [{"id": "t1", "role": "tool", "toolCallId": "c", "content": value}])
    for value in (None, 7, ["c"]):
        yield with_field("messages", [{"id": "t1", "role": "tool", "toolCallId": value, "content": ""}])
    conversations: list[Any] = [
        {"previousRunId": "unknown"},
        {"previousRunId": "a/b"},
        {"previousRunId": 1},
        {"hidden": "yes"},
        {"hidden": 1},
        {"groupId": 7},
        {"groupId": "x" * 201},
        {"parentThreadId": "a/b"},
        {"busy": "explode"},
        {"busy": 1},
        {"onDisconnect": "explode"},
        {"onDisconnect": 1},
        7,
        "x",
        [],
    ]
    for value in conversations:
        yield with_field("forwardedProps", {"conversation": value})
    for value in odd:
        if not isinstance(value, str):
            yield with_field("protocolVersion", value)


def bodies() -> Iterator[bytes]:
    yield from RAW
    for text in (r'"\ud83d"', r'"a\u0000b"', r'"\ude00"', "NaN", "1e999", "9" * 25):
        for path in ("threadId", "runId", "content", "state"):
            yield text_at(path, text)
    for body in (*missing(), *wrong_values(), *wrong_parts(), *wrong_extras()):
        yield json.dumps(body).encode()
    yield json.dumps(with_field("messages", [GOOD["messages"][0]] * 20_000)).encode()


async def post(chat: Chat, body: bytes) -> tuple[bytes, Any]:
    headers = {"Content-Type": "application/json"}
    return body, await chat.client.post("/agents/assistant/run", content=body, headers=headers)


@pytest.mark.requirement("AGUI-16")
async def test_every_malformed_run_request_is_refused_by_field_and_stores_nothing(
    open_chat: OpenChat,
) -> None:
    chat = await open_chat("never")
    whole = list(bodies())
    assert len(whole) > 300
    for start in range(0, len(whole), 50):
        for body, answer in await asyncio.gather(*(post(chat, body) for body in whole[start : start + 50])):
            shown = body[:300]
            assert 400 <= answer.status_code < 500, (answer.status_code, shown)
            assert answer.headers["content-type"] == "application/problem+json", shown
            problem = answer.json()
            assert problem["field"], (problem, shown)
            assert problem["detail"], (problem, shown)
    assert await chat.threads(include_hidden="true") == []
    assert chat.model.prompts == []


@pytest.mark.requirement("AGUI-16")
@pytest.mark.parametrize("state", [None, 0, "", [], [1, None], {"a": {"b": []}}, "text", 1.5, True])
async def test_any_json_is_a_state(open_chat: OpenChat, state: Any) -> None:
    chat = await open_chat("fine")
    assert (await chat.run("t", "hi", state=state))[-1].type == "RUN_FINISHED"


@pytest.mark.requirement("AGUI-16")
async def test_only_three_members_are_needed_and_null_means_absent(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    assert (await chat.post_run({**GOOD, "runId": "r1"})).status_code == 200
    nulls = {"state": None, "tools": None, "context": None, "forwardedProps": None, "parentRunId": None}
    messages = [
        {"id": "u2", "role": "user", "content": "again", "name": None},
        {"id": "a1", "role": "assistant", "content": None, "toolCalls": None},
    ]
    answer = await chat.post_run({**GOOD, **nulls, "runId": "r2", "messages": messages})
    assert answer.status_code == 200
    assert [m.join_text() for m in chat.model.prompts[1].messages] == ["hi", "one", "again"]


@pytest.mark.requirement("AGUI-16")
async def test_unknown_members_are_tolerated_and_unknown_parts_left_out_with_a_count(
    open_chat: OpenChat,
) -> None:
    chat = await open_chat("fine")
    parts = [{"type": "hologram", "x": 1}, {"type": "text", "text": "hi", "glow": True}]
    message = {"id": "u1", "role": "user", "content": parts, "mood": "good"}
    answer = await chat.post_run({**GOOD, "messages": [message], "future": {"x": 1}})
    assert answer.status_code == 200
    assert answer.headers["verbatim-dropped-parts"] == "1"
    assert (await chat.messages("t"))[0]["content"] == [{"type": "text", "text": "hi"}]
