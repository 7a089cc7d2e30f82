"""What only a model reads is on no path to a reader, and on every path to a model."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.hooks import AfterTurn
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolContext, tool
from app.conversation.messages import Injected, Message, user_message
from tests.services.chat import Chat, OpenChat, user
from tests.services.sse import SseFrame

HUSH = "hush-hush"
CONTEXT = [{"description": HUSH, "value": f"{HUSH} context"}]


def look(context: ToolContext) -> str:
    context.remind(f"{HUSH} in a result")
    return "seen"


@tool(approval=True)
def pay() -> str:
    return "paid"


def whisper(turn: AfterTurn) -> list[Message]:
    kinds = (Injected.META, Injected.EPHEMERAL)
    return [user_message(f"{HUSH} {kind}", injected=kind, origin=HUSH) for kind in kinds]


async def whispered(open_chat: OpenChat) -> tuple[Chat, list[SseFrame], ScriptedModel]:
    """A thread with context on a user message, a reminder in a result, injected messages, and a pause."""
    calls = [[CallPiece("a", "{}", name="look")], "said", [CallPiece("b", "{}", name="pay")], "done"]
    model = ScriptedModel(calls)
    agent = Agent("assistant", model=model, tools=[look, pay], after_turn=whisper)
    chat = await open_chat(agents=[agent])
    events = await chat.run("t", user("hello", "u1"), run="r1", context=CONTEXT)
    events += await chat.run("t", user("pay", "u2"), run="r2", context=[{"description": "x", "value": HUSH}])
    return chat, events, model


async def replayed(chat: Chat) -> str:
    return (await chat.client.get("/threads/t/runs/r1/events")).text


async def standing(chat: Chat) -> str:
    """The connect sequence: a list with nothing new."""
    return (await chat.post_run(chat.body("t", *await chat.messages("t")))).text


async def forked(chat: Chat) -> str:
    await chat.client.post("/threads/t/fork", json={"threadId": "f"})
    return (await chat.client.get("/threads/f/messages")).text


def getting(path: str) -> Callable[[Chat], Awaitable[str]]:
    async def get(chat: Chat) -> str:
        answer = await chat.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    return get


READERS: dict[str, Callable[[Chat], Awaitable[str]]] = {
    "messages": getting("/threads/t/messages"),
    "messages for 0.x clients": getting("/threads/t/messages?protocol=0"),
    "a page of messages": getting("/threads/t/messages?limit=3"),
    "transcript": getting("/threads/t/transcript"),
    "threads": getting("/threads?include_hidden=true"),
    "thread": getting("/threads/t"),
    "runs": getting("/threads/t/runs"),
    "state": getting("/threads/t/state"),
    "replay": replayed,
    "connect sequence": standing,
    "fork": forked,
}


@pytest.mark.requirement("MSG-09", "AGT-10", "AGUI-11")
@pytest.mark.parametrize("path", READERS)
async def test_no_path_to_a_reader_holds_what_only_a_model_reads(open_chat: OpenChat, path: str) -> None:
    chat, _, _ = await whispered(open_chat)
    told = await READERS[path](chat)
    assert HUSH not in told
    assert told.strip()


@pytest.mark.requirement("MSG-09", "AGT-08")
async def test_no_live_stream_holds_it_and_neither_does_the_snapshot_at_a_pause(open_chat: OpenChat) -> None:
    _, events, _ = await whispered(open_chat)
    assert "MESSAGES_SNAPSHOT" in [event.type for event in events]
    assert all(HUSH not in str(event.data) for event in events)


@pytest.mark.requirement("MSG-09", "AGT-10")
async def test_the_model_reads_all_of_it_where_it_stands(open_chat: OpenChat) -> None:
    _, _, model = await whispered(open_chat)
    second = [message.join_text("|") for message in model.prompts[1].messages]
    assert second == [
        f"hello|{HUSH}: {HUSH} context",
        "",
        f"seen|{HUSH} in a result",
        f"{HUSH} meta",
        f"{HUSH} ephemeral",
    ]
    third = [message.join_text("|") for message in model.prompts[2].messages]
    assert third == [*second[:4], "said", f"{HUSH} meta", f"pay|x: {HUSH}"]


@pytest.mark.requirement("MSG-09", "AGT-09")
async def test_the_summariser_reads_all_of_it_too(open_chat: OpenChat) -> None:
    model: Any = ScriptedModel([[CallPiece("a", "{}", name="look")], "said " * 100, "in short", "done"])
    agent = Agent(
        "assistant",
        model=model,
        tools=[look],
        after_turn=whisper,
        condense=Compaction(120, keep_tokens=30),
    )
    chat = await open_chat(agents=[agent])
    await chat.run("t", user("hello", "u1"), context=CONTEXT)
    await chat.run("t", user("more", "u2"))
    asked = [prompt for prompt in model.prompts if "seen" in prompt.messages[0].join_text()]
    assert asked, "nobody was asked to sum up"
    for words in (f"{HUSH} context", f"{HUSH} in a result", f"{HUSH} meta"):
        assert words in asked[0].messages[0].join_text()
