"""Compaction on a server: the store keeps every turn, a model reads the summary."""

import json
from itertools import count
from pathlib import Path

import pytest

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.models.scripted import ScriptedModel
from tests.services.chat import Chat, OpenChat, text_of, user
from tests.services.server import Launch
from tests.stories.test_restarts import talk_to

LONG = "word " * 80
HEAD = "Summary of what was said before:\n\n"


def compacting(*replies: str) -> tuple[Agent, ScriptedModel]:
    """Its summaries are numbered, so that one that was inherited can be told from one that was made anew."""
    model, number = ScriptedModel(replies), count(1)
    short = Compaction(150, keep_tokens=60, function=lambda _: f"in short {next(number)}")
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
    assert prompt(model) == ["in short 1", "second"]
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
    assert prompt(model) == ["in short 1", "second", "two", "third"]
    await chat.run("before", user("other", "u4"))
    assert prompt(model) == ["in short 2", "other"]
    assert [content for _, content in await chat.texts("before")] == [LONG, LONG, "other", "four"]


RETELLING = '''
import json

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.models.base import Finished, TextPiece
from app.conversation.messages import StopReason


class Retelling:
    """Answers with what it was shown, and at length where it was asked at length."""

    provider = name = "retelling"
    inputs = frozenset()

    async def stream(self, prompt):
        read = [message.join_text() for message in prompt.messages]
        yield TextPiece(read[0] if len(read) == 1 else json.dumps(read))
        yield Finished(StopReason.STOP)


short = Compaction(150, keep_tokens=60, function=lambda messages: f"{len(messages)} in short")
bot = Agent("assistant", model=Retelling(), condense=short)
'''


@pytest.mark.requirement("AGT-09", "MSG-07")
async def test_after_a_kill_the_summary_stands_for_what_it_covers_as_before(
    launch: Launch, tmp_path: Path
) -> None:
    (tmp_path / "retelling.py").write_text(RETELLING)
    server = await launch(AGENTS="retelling:bot")
    async with talk_to(server) as chat:
        await chat.run("t", user(LONG, "u1"))
        before = text_of(await chat.run("t", user("second", "u2")))
        assert json.loads(before) == [HEAD + "2 in short", "second"]
        told = await chat.messages("t")
        await server.kill()
    async with talk_to(await launch(AGENTS="retelling:bot")) as chat:
        assert await chat.messages("t") == told
        after = text_of(await chat.run("t", user("third", "u3")))
        assert json.loads(after) == [HEAD + "2 in short", "second", before, "third"]
        assert [content for _, content in await chat.texts("t")][:4] == [LONG, LONG, "second", before]
