"""What was said, read back: messages, pages, state, transcript."""

import asyncio
import re
from typing import Any

import pytest

from app.agent.models.base import CallPiece, ThinkingPiece
from tests.services.chat import OpenChat, user

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def lookup(city: str) -> str:
    """The weather in a city."""
    if city == "Nowhere":
        raise ValueError("secret details")
    return f"Sunny in {city}."


CALLS = [
    ThinkingPiece("I should look."),
    "Let me see. ",
    CallPiece("0", '{"city": "Basel"}', name="lookup", call_id="call_a"),
    CallPiece("1", '{"city": "Nowhere"}', name="lookup", call_id="call_b"),
]


@pytest.mark.requirement("AGUI-05", "HIS-10")
async def test_messages_come_back_as_ag_ui_messages_with_times_and_senders(open_chat: OpenChat) -> None:
    chat = await open_chat(CALLS, "It is sunny.", tools=[lookup])
    await chat.run("t", user("Weather?", "u1"))
    messages = await chat.messages("t")
    assert [message["role"] for message in messages] == [
        "user",
        "reasoning",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    for message in messages:
        assert RFC3339.fullmatch(message["metadata"]["createdAt"])
    assert [m["metadata"]["senderId"] for m in messages] == ["user"] + ["assistant"] * 5
    question, reasoning, asking, first, second, answer = messages
    assert (question["id"], question["content"]) == ("u1", "Weather?")
    assert reasoning["content"] == "I should look."
    assert asking["content"] == "Let me see. "
    assert [call["id"] for call in asking["toolCalls"]] == ["call_a", "call_b"]
    assert (first["toolCallId"], first["content"]) == ("call_a", "Sunny in Basel.")
    assert second["metadata"]["isError"] is True
    assert "secret details" not in second["content"]
    assert answer["content"] == "It is sunny."


async def test_pages_of_messages_walk_back_to_the_start(open_chat: OpenChat) -> None:
    chat = await open_chat(*(f"answer {number}" for number in range(5)))
    for number in range(5):
        await chat.run("t", f"question {number}")
    whole = await chat.messages("t")
    walked: list[Any] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = (await chat.client.get("/threads/t/messages", params=query)).json()
        assert page["threadId"] == "t"
        walked = page["messages"] + walked
        if "nextBefore" not in page:
            break
        query["before"] = page["nextBefore"]
    assert walked == whole
    assert len(whole) == 10


async def test_a_cursor_of_another_thread_is_refused(open_chat: OpenChat) -> None:
    chat = await open_chat("a", "b", "c")
    for thread in ("mine", "mine", "yours"):
        await chat.run(thread, "hello")
    page = (await chat.client.get("/threads/mine/messages", params={"limit": 1})).json()
    answer = await chat.client.get("/threads/yours/messages", params={"before": page["nextBefore"]})
    assert (answer.status_code, answer.json()["field"]) == (422, "before")


@pytest.mark.requirement("HIS-11", "HIS-12")
async def test_walking_transcript_pages_while_runs_arrive_gives_every_turn_once(open_chat: OpenChat) -> None:
    chat = await open_chat(*(f"answer {number}" for number in range(9)))
    ids = ["z", "a", "m", "b", "y", "c", "x"]
    for id in ids:
        await chat.run("t", f"question {id}", run=id)
    walked: list[Any] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = (await chat.client.get("/threads/t/transcript", params=query)).json()
        walked = page["rows"] + walked
        assert page["latest"]["status"] == "completed"
        if page["nextBeforeRunId"] is None:
            break
        query["before_run_id"] = page["nextBeforeRunId"]
        if len(walked) in (2, 4):
            await chat.run("t", "meanwhile", run=f"late{len(walked)}")
    assert [row["runId"] for row in walked] == ids
    assert [row["previousRunId"] for row in walked] == [None, *ids[:-1]]
    assert walked[0]["messages"][0]["content"] == "question z"
    assert page["latest"]["runId"] == "late4"


async def test_a_thread_without_runs_has_an_empty_history(open_chat: OpenChat) -> None:
    chat = await open_chat()
    await chat.client.post("/threads", json={"threadId": "t"})
    assert (await chat.client.get("/threads/t/messages")).json() == {"threadId": "t", "messages": []}
    transcript = (await chat.client.get("/threads/t/transcript")).json()
    assert transcript == {"rows": [], "nextBeforeRunId": None, "latest": None}
    assert (await chat.client.get("/threads/t/state")).json() == {"threadId": "t", "state": {}}


@pytest.mark.requirement("HIS-09")
async def test_the_opening_turn_is_readable_before_the_model_says_a_word(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat([gate, "done"])
    started = await chat.client.post("/threads/t/runs", json={"text": "hello"})
    assert started.status_code == 202
    assert await chat.texts("t") == [("user", "hello")]
    assert [run["status"] for run in await chat.runs("t")] == ["running"]
    gate.set()


async def test_any_json_state_is_kept_and_shown(open_chat: OpenChat) -> None:
    chat = await open_chat("a", "b", "c", "d")
    odd = ["not", "an", "object", None, 1.5]
    first = await chat.run("t", "one", state=odd)
    assert "STATE_SNAPSHOT" not in [event.type for event in first]
    kept = await chat.run("t", "two", state={})
    assert [event.data["snapshot"] for event in kept if event.type == "STATE_SNAPSHOT"] == [odd]
    await chat.run("t", "three", state=None)
    assert (await chat.client.get("/threads/t/state")).json()["state"] == odd
    await chat.run("t", "four", state={"now": "this"})
    assert (await chat.client.get("/threads/t/state")).json()["state"] == {"now": "this"}


async def test_parts_come_back_as_parts(open_chat: OpenChat) -> None:
    picture = {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}
    parts = [{"type": "text", "text": "What is"}, picture, {"type": "text", "text": "this?"}]
    chat = await open_chat("A greeting.", inputs=frozenset({"image"}))
    await chat.run("t", user(parts, "u1"))
    assert (await chat.messages("t"))[0]["content"] == parts
    [prompt] = chat.model.prompts
    assert [block.type for block in prompt.messages[0].content] == ["text", "image", "text"]


async def test_a_part_that_the_model_does_not_take_is_refused_by_name(open_chat: OpenChat) -> None:
    sound = {"type": "audio", "source": {"type": "data", "value": "aGk=", "mimeType": "audio/wav"}}
    chat = await open_chat("hm")
    answer = await chat.post_run(chat.body("t", user([{"type": "text", "text": "hear"}, sound])))
    assert answer.status_code == 422
    assert answer.json()["field"].startswith("messages/0/content/1")
    assert "audio" in answer.json()["detail"]
    assert await chat.threads() == []
