"""Compaction on a server: the store keeps every turn, a model reads the summary."""

import pytest

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.models.scripted import ScriptedModel
from tests.services.chat import Chat, OpenChat, user

LONG = "word " * 80
HEAD = "Summary of what was said before:\n\n"


def compacting(*replies: str) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(replies)
    short = Compaction(150, keep_tokens=60, function=lambda messages: f"{len(messages)} in short")
    return Agent("assistant", model=model, condense=short), model


def prompt(model: ScriptedModel) -> list[str]:
    return [message.join_text().removeprefix(HEAD) for message in model.prompts[-1].messages]


async def summarised(chat: Chat) -> None:
    """Two turns; the second begins with a summary of the first."""
    await chat.run("t", user(LONG, "u1"), run="r1")
    await chat.run("t", user("second", "u2"), run="r2")


@pytest.mark.requirement("AGT-09", "HIS-10", "MSG-09")
async def test_readers_get_every_turn_and_no_summary(open_chat: OpenChat) -> None:
    agent, model = compacting(LONG, "two")
    chat = await open_chat(agents=[agent])
    await summarised(chat)
    assert prompt(model) == ["2 in short", "second"]
    assert [content for _, content in await chat.texts("t")] == [LONG, LONG, "second", "two"]
    transcript = await chat.client.get("/threads/t/transcript")
    assert "in short" not in transcript.text
    assert [len(row["messages"]) for row in transcript.json()["rows"]] == [2, 2]


@pytest.mark.requirement("AGT-09")
async def test_a_fork_inherits_a_summary_only_with_the_turn_that_it_stands_in(open_chat: OpenChat) -> None:
    agent, model = compacting(LONG, "two", "three", "four")
    chat = await open_chat(agents=[agent])
    await summarised(chat)
    await chat.client.post("/threads/t/fork", json={"threadId": "behind"})
    await chat.client.post("/threads/t/fork", json={"threadId": "before", "runId": "r1"})
    await chat.run("behind", user("third", "u3"))
    assert prompt(model) == ["2 in short", "second", "two", "third"]
    await chat.run("before", user("other", "u4"))
    assert prompt(model) == ["2 in short", "other"]
    assert [content for _, content in await chat.texts("before")] == [LONG, LONG, "other", "four"]
