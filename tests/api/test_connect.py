"""`POST /agents/{agent}/connect`: any client is brought to the present, and follows what is live."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.agent.models.base import CallPiece
from app.agent.tools import tool
from tests.agui.order import check_order, check_shape
from tests.agui.reducer import Client
from tests.services.chat import Chat, OpenChat, Stream, text_of, user
from tests.services.sse import SseFrame

both_generations = pytest.mark.parametrize("version", ["1.0", None])


def waits(gate: asyncio.Event) -> Callable[[], Any]:
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "waited"

    return wait


async def connected(chat: Chat, thread: str, *messages: Any, **more: Any) -> list[SseFrame]:
    body = chat.body(thread, *messages, **more)
    async with chat.client.stream("POST", "/agents/assistant/connect", json=body) as response:
        assert response.status_code == 200, await response.aread()
        return await Stream(response).rest()


def events(frames: list[SseFrame]) -> list[dict[str, Any]]:
    told = [frame.data for frame in frames]
    check_order(told)
    for event in told:
        check_shape(event)
    return told


@pytest.mark.requirement("AGUI-15")
@both_generations
async def test_an_unknown_thread_is_an_empty_one_and_stays_unknown(
    open_chat: OpenChat, version: str | None
) -> None:
    chat = await open_chat("one")
    told = events(await connected(chat, "t", run="mine", protocolVersion=version))
    assert [event["type"] for event in told] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert (told[0]["runId"], told[1]["messages"]) == ("mine", [])
    assert await chat.threads() == []


@pytest.mark.requirement("AGUI-15")
@both_generations
async def test_a_thread_at_rest_brings_every_client_to_the_same_state(
    open_chat: OpenChat, version: str | None
) -> None:
    chat = await open_chat("one", "two")
    await chat.run("t", user("first", "u1"), run="r1", state={"n": 1})
    early = await chat.messages("t")
    await chat.run("t", user("second", "u2"), run="r2")
    history = await chat.messages("t")
    for held in ([], early, history):
        told = events(await connected(chat, "t", *held, protocolVersion=version))
        client = Client(held)
        assert client.take(told) == history
        assert client.state == {"n": 1}
        assert (told[0]["runId"], told[-1]["runId"]) == ("r2", "r2")
    assert [run["runId"] for run in await chat.runs("t")] == ["r1", "r2"]


@pytest.mark.requirement("AGUI-15", "AGUI-09")
@both_generations
async def test_a_paused_thread_asks_its_questions_again(open_chat: OpenChat, version: str | None) -> None:
    @tool(approval=True)
    def send() -> str:
        """Sends."""
        return "sent"

    chat = await open_chat(
        ["Let me. ", CallPiece("0", "{}", name="send", call_id="c1")], "done", tools=[send]
    )
    paused = await chat.run("t", user("go", "u1"), run="r1", protocolVersion=version)
    told = events(await connected(chat, "t", protocolVersion=version))
    assert told[-1]["outcome"] == paused[-1].data["outcome"]
    assert told[-1]["outcome"]["type"] == "interrupt"


@pytest.mark.requirement("AGUI-15", "LIVE-02")
@both_generations
async def test_a_live_run_is_joined_in_the_middle_and_followed_to_its_end(
    open_chat: OpenChat, version: str | None
) -> None:
    gate = asyncio.Event()
    call = CallPiece("0", '{"a": 1}', name="wait", call_id="c1")
    chat = await open_chat("one", ["Let me. ", call], "All done.", tools=[waits(gate)])
    await chat.run("t", user("first", "u1"), run="r1", state={"n": 1})
    early = await chat.messages("t")
    body = chat.body("t", *early, user("go", "u2"), run="r2", protocolVersion=version)
    async with chat.streaming(body) as stream:
        seen = await stream.until("TOOL_CALL_END")
        partial = Client([*early, user("go", "u2")])
        partial.take(frame.data for frame in seen)
        joining = [
            asyncio.create_task(connected(chat, "t", *held, protocolVersion=version))
            for held in ([], early, partial.messages)
        ]
        gate.set()
        seen += await stream.rest()
    there = Client([*early, user("go", "u2")])
    there.take(frame.data for frame in seen)
    for held, joined in zip(([], early, partial.messages), await asyncio.gather(*joining), strict=True):
        told = events(joined)
        client = Client(held)
        assert client.take(told) == there.messages
        assert told[0]["runId"] == told[-1]["runId"] == "r2"
    assert there.messages == await chat.messages("t", **({} if version else {"protocol": "0"}))


@pytest.mark.requirement("AGUI-07", "AGUI-15")
async def test_a_list_with_nothing_new_follows_the_live_run_it_ends_in(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    call = CallPiece("0", "{}", name="wait", call_id="c1")
    chat = await open_chat("one", ["Let me. ", call], "All done.", tools=[waits(gate)])
    await chat.run("t", user("first", "u1"), run="r1")
    early = await chat.messages("t")
    async with chat.streaming(chat.body("t", *early, user("go", "u2"), run="r2")) as stream:
        seen = await stream.until("TOOL_CALL_START")
        open_message = {"id": seen[-1].data["parentMessageId"], "role": "assistant", "content": "Let me. "}
        lists: tuple[list[Any], ...] = (
            [*early, user("go", "u2")],
            [*early, user("go", "u2"), open_message],
            [open_message],
            [],
        )
        following = [
            asyncio.create_task(chat.run("t", *messages, run=f"f{number}"))
            for number, messages in enumerate(lists)
        ]
        refused = await chat.post_run(chat.body("t", *early[:1], run="f9"))
        assert (refused.status_code, refused.json()["runId"]) == (409, "r2")
        stale = await chat.post_run(chat.body("t", *early, run="f9"))
        assert (stale.status_code, stale.json()["runId"]) == (409, "r2")
        gate.set()
        await stream.rest()
    for number, frames in enumerate(await asyncio.gather(*following)):
        told = events(frames)
        assert Client().take(told) == await chat.messages("t")
        assert told[0]["runId"] == told[-1]["runId"] == f"f{number}"
    assert len(await chat.runs("t")) == 2


@pytest.mark.requirement("LIVE-02")
async def test_a_position_that_was_lost_is_answered_by_the_present_of_a_live_run(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    call = CallPiece("0", "{}", name="wait", call_id="c1")
    chat = await open_chat(["Let me. ", call], "All done.", tools=[waits(gate)])
    async with chat.streaming(chat.body("t", user("go", "u1"), run="r1")) as stream:
        seen = await stream.until("TOOL_CALL_START")
        seq = (seen[-1].id or "").split(".")[0]
        for path in ("/threads/t/stream", "/threads/t/runs/r1/events"):
            async with chat.following(path, **{"Last-Event-ID": f"{seq}.7.2"}) as other:
                told = await other.until("MESSAGES_SNAPSHOT")
                assert [frame.type for frame in told] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
        async with chat.following("/threads/t/stream", **{"Last-Event-ID": "0.0.1"}) as other:
            gate.set()
            told = events(await other.rest())
        await stream.rest()
    assert Client().take(told) == await chat.messages("t")
    assert text_of(await chat.run("t", run="again")) == ""


async def test_an_unknown_agent_has_no_threads_to_connect_to(open_chat: OpenChat) -> None:
    chat = await open_chat("one")
    answer = await chat.client.post("/agents/nobody/connect", json=chat.body("t"))
    assert (answer.status_code, answer.json()["field"]) == (404, "agent")
