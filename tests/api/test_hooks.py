"""What hooks append is the model's and the store's; no reader hears of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.agent.agent import Agent
from app.agent.hooks import AfterTurn, BeforeStop
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.conversation.messages import Injected, Message, user_message
from tests.services.chat import Chat, OpenChat, text_of
from tests.services.server import Launch
from tests.stories.test_restarts import talk_to

SCRIPT = ["", [CallPiece("0", "{}", name="look", call_id="c")], "one", "two", "three"]


def look() -> str:
    """Looks."""
    return "sunny"


def after(turn: AfterTurn) -> Sequence[Message]:
    return [
        user_message("secret meta", injected=Injected.META, origin="memory"),
        user_message("secret now", injected=Injected.EPHEMERAL, origin="clock"),
    ]


def guard(stop: BeforeStop) -> Sequence[Message]:
    return [user_message("secret guard")] if stop.turn == 2 else []


def agents() -> tuple[list[Agent], ScriptedModel]:
    """One with hooks, and one without that says the same words."""
    model = ScriptedModel(SCRIPT[1:])
    hooked = Agent("assistant", model=model, tools=[look], after_turn=after, before_stop=guard)
    plain = Agent("plain", model=ScriptedModel([SCRIPT[1], "one", "three"]), tools=[look])
    return [hooked, plain], model


async def everything_read(chat: Chat, thread: str) -> str:
    paths = (f"/threads/{thread}", *(f"/threads/{thread}/{x}" for x in ("messages", "transcript", "runs")))
    return "".join([(await chat.client.get(path)).text for path in ("/threads", *paths)])


@pytest.mark.requirement("AGT-06", "AGT-07", "AGT-08", "MSG-06", "MSG-07")
async def test_readers_get_no_trace_of_what_a_hook_appends_and_later_prompts_get_the_meta_ones(
    open_chat: OpenChat,
) -> None:
    serving, model = agents()
    chat = await open_chat(agents=serving)
    events = await chat.run("t", "go", run="r")
    assert events[-1].type == "RUN_FINISHED"
    assert text_of(events) == "onetwo"
    async with chat.following("/threads/t/runs/r/events") as stream:
        again = await stream.rest()
    for told in (events, again):
        assert "secret" not in json.dumps([event.data for event in told])
    assert "secret" not in await everything_read(chat, "t")
    assert [role for role, _ in await chat.texts("t")] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
    ]
    (thread,) = await chat.threads()
    assert thread["title"] == "go"
    await chat.run("t", "more")
    last = [message.join_text() for message in model.prompts[3].messages]
    assert last == [
        "go",
        "",
        "sunny",
        "secret meta",
        "one",
        "secret meta",
        "secret guard",
        "two",
        "secret meta",
        "more",
    ]
    within = [message.join_text() for message in model.prompts[2].messages]
    assert within[3:5] == ["secret meta", "secret now"]


async def shapes(chat: Chat, agent: str, thread: str) -> tuple[Any, ...]:
    """What readers get of a run, without ids and times."""
    answer = await chat.post_run(chat.body(thread, "go"), agent)
    assert answer.status_code == 200
    transcript = (await chat.client.get(f"/threads/{thread}/transcript")).text
    row = (await chat.client.get(f"/threads/{thread}")).json()
    return (
        [line.split('"')[3] for line in answer.text.splitlines() if line.startswith("data:")],
        await chat.texts(thread),
        transcript.count('"role"'),
        row["title"],
        sorted(row),
    )


@pytest.mark.requirement("AGT-08")
async def test_a_run_with_silent_company_looks_to_readers_like_one_without(open_chat: OpenChat) -> None:
    script = [SCRIPT[1], "one"]
    chat = await open_chat(
        agents=[
            Agent("hooked", model=ScriptedModel(script), tools=[look], after_turn=after),
            Agent("plain", model=ScriptedModel(script), tools=[look]),
        ]
    )
    assert await shapes(chat, "hooked", "a") == await shapes(chat, "plain", "b")


@pytest.mark.requirement("AGT-05", "AGT-08")
async def test_a_hook_that_fails_ends_its_run_with_a_public_sentence_and_frees_the_thread(
    open_chat: OpenChat,
) -> None:
    broken = [True]

    def fails(_: AfterTurn) -> None:
        if broken.pop():
            raise RuntimeError("a secret of ours")

    model = ScriptedModel(["one", "two"])
    chat = await open_chat(agents=[Agent("assistant", model=model, after_turn=fails)])
    events = await chat.run("t", "go")
    assert events[-1].type == "RUN_ERROR"
    assert events[-1].data["code"] == "INTERNAL_ERROR"
    assert "secret" not in json.dumps([event.data for event in events])
    broken.append(False)
    assert (await chat.run("t", "more"))[-1].type == "RUN_FINISHED"
    assert [text for _, text in await chat.texts("t")] == ["go", "one", "more", "two"]


ECHO = '''
import asyncio

from app.agent.agent import Agent
from app.agent.models.base import Finished, TextPiece
from app.conversation.messages import Injected, StopReason, user_message


class Echo:
    """Says how often it was shown the words of a hook."""

    provider = name = "echo"
    inputs = frozenset()

    async def stream(self, prompt):
        read = " ".join(message.join_text() for message in prompt.messages)
        yield TextPiece(f"lasting {read.count('kept note')}, passing {read.count('lost note')}")
        if prompt.messages[-1].join_text() == "stay":
            await asyncio.Event().wait()
        yield Finished(StopReason.STOP)


def after(turn):
    return [
        user_message("kept note", injected=Injected.META, origin="memory"),
        user_message("lost note", injected=Injected.EPHEMERAL),
    ]


def again(stop):
    first = not any(message.join_text() == "stay" for message in stop.messages)
    return [user_message("stay")] if first else None


bot = Agent("bot", model=Echo(), after_turn=after, before_stop=again)
'''


@pytest.mark.requirement("AGT-08", "MSG-07")
async def test_meta_survives_a_kill_and_what_was_ephemeral_does_not(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "echoing.py").write_text(ECHO)
    server = await launch(AGENTS="echoing:bot")
    async with talk_to(server) as chat, chat.streaming(chat.body("t", "hello"), "bot") as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        second = await stream.until("TEXT_MESSAGE_CONTENT")
        assert text_of(second) == "lasting 1, passing 1"
        await server.kill()
    again = await launch(AGENTS="echoing:bot")
    async with talk_to(again) as chat:
        answer = await chat.post_run(chat.body("t", "are you there?"), "bot")
        assert "RUN_FINISHED" in answer.text
        assert "lasting 1, passing 0" in answer.text
        assert "note" not in await everything_read(chat, "t")
