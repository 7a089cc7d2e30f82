"""The same request again, however it comes, is the run that it became."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.agent.models.base import CallPiece
from tests.agui.reducer import Client
from tests.services.chat import OpenChat, user

pytestmark = pytest.mark.requirement("LIVE-09")


def waits(gate: asyncio.Event) -> Callable[[], Any]:
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "waited"

    return wait


CALL = ["Let me. ", CallPiece("0", "{}", name="wait", call_id="c1")]


@pytest.mark.parametrize("reply", ["one", [ValueError("no")]])
async def test_a_request_whose_run_is_over_is_told_that_run_byte_for_byte(
    open_chat: OpenChat, reply: Any
) -> None:
    chat = await open_chat(reply)
    body = chat.body("t", user("go", "u1"), run="r")
    first = await chat.post_run(body)
    again = await chat.post_run(body)
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["content-location"] == "/threads/t/runs/r/events"
    assert len(chat.model.prompts) == len(await chat.runs("t")) == 1


async def test_a_request_whose_run_is_live_follows_it_from_the_first_event(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat(CALL, "end", tools=[waits(gate)])
    body = chat.body("t", user("go", "u1"), run="r")
    async with chat.streaming(body) as stream:
        seen = await stream.until("TOOL_CALL_END")
        async with chat.streaming(body) as other:
            told = await other.until("TOOL_CALL_END")
            assert [frame.raw for frame in told] == [frame.raw for frame in seen]
            gate.set()
            assert [frame.raw for frame in await other.rest()] == [frame.raw for frame in await stream.rest()]
    assert len(await chat.runs("t")) == 1


@pytest.mark.parametrize("is_live", [True, False])
async def test_a_list_that_holds_a_part_of_the_answer_is_brought_to_the_present(
    open_chat: OpenChat, is_live: bool
) -> None:
    gate = asyncio.Event()
    chat = await open_chat(CALL, "end", tools=[waits(gate)])
    async with chat.streaming(chat.body("t", user("go", "u1"), run="r")) as stream:
        client = Client([user("go", "u1")])
        client.take(frame.data for frame in await stream.until("TOOL_CALL_END"))
        body = chat.body("t", *client.messages, run="r")
        if not is_live:
            gate.set()
            await stream.rest()
        async with chat.streaming(body) as again:
            gate.set()
            told = [frame.data for frame in await again.rest()]
        await stream.rest()
    assert "MESSAGES_SNAPSHOT" in [event["type"] for event in told]
    assert client.take(told) == await chat.messages("t")
    assert told[-1]["runId"] == "r"
    assert len(await chat.runs("t")) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [user("other", "u1")]},
        {"messages": [user("go", "u2")]},
        {"messages": [user("go", "u1"), user("more", "u2")]},
        {"state": {"n": 2}},
        {"context": [{"description": "d", "value": "v"}]},
        {"tools": [{"name": "t", "description": "d"}]},
        {"forwardedProps": {"conversation": {"hidden": True}}},
        {"threadId": "other"},
    ],
)
async def test_other_material_under_a_used_run_id_is_refused(
    open_chat: OpenChat, change: dict[str, Any]
) -> None:
    chat = await open_chat("one", "two")
    body = chat.body("t", user("go", "u1"), run="r", state={"n": 1})
    await chat.post_run(body)
    other = await chat.post_run({**body, **change})
    assert (other.status_code, other.json()["code"], other.json()["field"]) == (409, "run_exists", "runId")
    assert len(chat.model.prompts) == 1
    assert await chat.texts("t") == [("user", "go"), ("assistant", "one")]


@pytest.mark.parametrize("same", [True, False])
async def test_of_two_requests_at_once_one_becomes_the_run_and_the_other_follows_it(
    open_chat: OpenChat, same: bool
) -> None:
    chat = await open_chat(*["one"] * 20)
    for number in range(20):
        thread = f"t{number}"
        body = chat.body(thread, user("go", "u1"), run=f"r{number}")
        other = body if same else {**body, "state": {"other": True}}
        first, second = await asyncio.gather(chat.post_run(body), chat.post_run(other))
        if same:
            assert (first.status_code, first.content) == (second.status_code, second.content)
        else:
            assert sorted([first.status_code, second.status_code]) == [200, 409]
        assert len(await chat.runs(thread)) == 1
        assert await chat.texts(thread) == [("user", "go"), ("assistant", "one")]


async def test_a_plain_text_is_said_once_under_its_run_id(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    said = {"text": "go", "runId": "r"}
    first = await chat.client.post("/threads/t/runs", json=said)
    again = await chat.client.post("/threads/t/runs", json=said)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["runId"] == "r"
    followed = await chat.client.post("/threads/t/runs", json=said, headers={"Accept": "text/event-stream"})
    assert followed.headers["content-type"].startswith("text/event-stream")
    assert "RUN_FINISHED" in followed.text
    other = await chat.client.post("/threads/t/runs", json={**said, "text": "stay"})
    assert (other.status_code, other.json()["code"]) == (409, "run_exists")
    assert await chat.texts("t") == [("user", "go"), ("assistant", "one")]


async def test_a_request_whose_log_is_gone_is_told_its_run_from_storage(open_chat: OpenChat) -> None:
    chat = await open_chat("one", log_retention_seconds=0)
    body = chat.body("t", user("go", "u1"), run="r")
    await chat.post_run(body)
    async with chat.streaming(body) as stream:
        told = [frame.data for frame in await stream.rest()]
    assert Client([user("go", "u1")]).take(told) == await chat.messages("t")
    assert len(chat.model.prompts) == 1
