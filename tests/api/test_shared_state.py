"""The shared state of a thread, between clients and tools."""

from pathlib import Path
from typing import Any

import pytest

from app.agent.models.base import CallPiece
from app.agent.models.scripted import Reply
from app.agent.tools import ToolContext
from tests.services.chat import Chat, OpenChat, user
from tests.services.server import Launch
from tests.services.sse import SseFrame
from tests.stories.test_restarts import talk_to

COUNTER = """
from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolContext

def count(context: ToolContext) -> str:
    context.patch_state([{"op": "add", "path": "/n", "value": context.state.get("n", 0) + 1}])
    return "counted"

calls = [CallPiece("0", "{}", name="count", call_id="c")]
assistant = Agent("assistant", model=ScriptedModel([calls, "one"]), tools=[count])
"""
COUNT: Reply = [CallPiece("0", "{}", name="count", call_id="c")]


def count(context: ToolContext) -> str:
    state = context.state
    before = state.get("n", 0) if isinstance(state, dict) else 0
    assert isinstance(before, int)
    context.patch_state([{"op": "add", "path": "/n", "value": before + 1}])
    return "counted"


async def state_of(chat: Chat, thread: str = "t") -> Any:
    return (await chat.client.get(f"/threads/{thread}/state")).json()["state"]


def told(events: list[SseFrame]) -> list[tuple[str, Any]]:
    names = {"STATE_SNAPSHOT": "snapshot", "STATE_DELTA": "delta"}
    return [(event.type, event.data[names[event.type]]) for event in events if event.type in names]


@pytest.mark.requirement("AGUI-18")
@pytest.mark.parametrize("nothing", [None, {}, "absent"])
async def test_a_request_without_a_state_keeps_the_stored_one_and_is_told_it(
    open_chat: OpenChat, nothing: Any
) -> None:
    chat = await open_chat("one", "two")
    assert told(await chat.run("t", user("a", "u1"), state={"page": 1})) == []
    body = chat.body("t", user("b", "u2"), state=nothing)
    if nothing == "absent":
        del body["state"]
    async with chat.streaming(body) as stream:
        events = await stream.rest()
    assert told(events) == [("STATE_SNAPSHOT", {"page": 1})]
    assert await state_of(chat) == {"page": 1}


@pytest.mark.requirement("AGUI-18")
@pytest.mark.parametrize("state", [{"other": True}, [1, 2], "text", 0, False])
async def test_any_other_value_replaces_it(open_chat: OpenChat, state: Any) -> None:
    chat = await open_chat("one", "two")
    await chat.run("t", user("a", "u1"), state={"page": 1})
    assert told(await chat.run("t", user("b", "u2"), state=state)) == []
    assert await state_of(chat) == state


@pytest.mark.requirement("AGUI-18", "AGT-14")
async def test_a_tool_changes_it_for_clients_for_later_runs_and_for_a_branch(open_chat: OpenChat) -> None:
    chat = await open_chat(COUNT, "one", COUNT, "two", COUNT, "three", tools=[count])
    first = await chat.run("t", user("a", "u1"), run="r1", state={"page": 1})
    assert told(first) == [("STATE_DELTA", [{"op": "add", "path": "/n", "value": 1}])]
    second = await chat.run("t", user("b", "u2"), run="r2", state={"page": 9})
    assert await state_of(chat) == {"page": 9, "n": 1}
    assert [kind for kind, _ in told(second)] == ["STATE_DELTA"]
    conversation = {"conversation": {"previousRunId": "r1"}}
    third = await chat.run("t", user("c", "u3"), forwardedProps=conversation)
    assert told(third)[0] == ("STATE_SNAPSHOT", {"page": 1, "n": 1})
    assert await state_of(chat) == {"page": 1, "n": 2}


@pytest.mark.requirement("AGUI-18")
async def test_a_change_is_kept_when_the_run_fails_behind_it(open_chat: OpenChat) -> None:
    chat = await open_chat(COUNT, [ValueError("no")], tools=[count])
    await chat.run("t", user("a", "u1"))
    assert await state_of(chat) == {"n": 1}


@pytest.mark.requirement("AGUI-18")
async def test_it_outlives_a_killed_server_and_tools_go_on_from_it(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    server = await launch(AGENTS="counter:assistant")
    async with talk_to(server) as chat:
        await chat.run("t", user("a", "u1"), state={"page": 1})
    await server.kill()
    again = await launch(AGENTS="counter:assistant")
    async with talk_to(again) as chat:
        assert await state_of(chat) == {"page": 1, "n": 1}
        events = await chat.run("t", user("b", "u2"))
        assert told(events)[0] == ("STATE_SNAPSHOT", {"page": 1, "n": 1})
        assert await state_of(chat) == {"page": 1, "n": 2}


@pytest.mark.requirement("AGUI-12")
async def test_an_image_is_stored_shown_to_the_model_and_given_back(open_chat: OpenChat) -> None:
    chat = await open_chat("a dot", inputs=frozenset({"image"}))
    parts = [
        {"type": "text", "text": "what is it?"},
        {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
    ]
    await chat.run("t", user(parts, "u1"))
    (first, _) = await chat.messages("t")
    assert first["content"] == parts
    assert [block.type for block in chat.model.prompts[0].messages[0].content] == ["text", "image"]
