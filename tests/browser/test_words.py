"""What becomes message text, what does not, and that text is never more than text."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from playwright.async_api import expect
from pydantic import JsonValue

from app.agent.agent import Agent
from app.agent.context import RunContext
from app.agent.events import AgentEvent, Appended, RunDone
from app.agent.models.base import CallPiece, Finished, ThinkingPiece
from app.agent.models.scripted import ScriptedModel
from app.conversation.blocks import Block, Reminder, Text
from app.conversation.entries import MessageEntry
from app.conversation.messages import Injected, StopReason, user_message
from app.conversation.recall import EVERYTHING, Recall
from tests.browser.chat_page import ChatPage
from tests.services.chat import OpenChat, user

SECRET = "FOR-THE-MODEL-ALONE"
HOSTILE = (
    '<img src=x onerror="window.broken=1"><script>window.broken=2</script>'
    '<svg onload="window.broken=3"></svg></textarea><a href="javascript:window.broken=4">x</a> **bold** &amp;'
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPhfDwACgwF/wjYqIwAAAABJRU5ErkJggg=="


class Injecting:
    """An agent that puts messages of its own into the history before the end of every run."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.name = agent.name
        self.description = agent.description

    def capabilities(self) -> Mapping[str, JsonValue]:
        return self._agent.capabilities()

    def accepts(self) -> frozenset[str]:
        return self._agent.accepts()

    def recall(self) -> Recall:
        return EVERYTHING

    async def respond(self, context: RunContext) -> AsyncIterator[AgentEvent]:
        async for event in self._agent.respond(context):
            if isinstance(event, RunDone):
                for kind in (Injected.META, Injected.EPHEMERAL):
                    yield Appended(MessageEntry(user_message(SECRET, injected=kind, origin="test")))
                told: list[Block] = [Reminder(text=SECRET), Text(text="A word in between.")]
                yield Appended(MessageEntry(user_message(told)))
            yield event


def look() -> list[Block]:
    """Looks something up."""
    return [Text(text="what was found"), Reminder(text=SECRET, origin="test")]


@pytest.mark.requirement("UI-01")
async def test_only_text_blocks_are_shown_while_it_streams_and_after_a_reload(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([[CallPiece("0", "{}", name="look", call_id="c")], [gate, "The answer."]])
    chat = await open_chat(agents=[Injecting(Agent("assistant", model=model, tools=[look]))])
    body = chat.body("t", "Look, please.", context=[{"description": "where", "value": SECRET}])
    async with chat.streaming(body) as stream:
        await chat_page.open(chat.base_url, "t")
        await expect(chat_page.cards()).to_contain_text("what was found")
        gate.set()
        await stream.rest()
    for _ in range(2):
        await chat_page.sees("The answer.")
        await chat_page.idle()
        assert await chat_page.texts("user") == ["Look, please.", "A word in between."]
        assert await chat_page.texts("assistant") == ["The answer."]
        await expect(chat_page.cards()).to_contain_text("what was found")
        assert SECRET not in await chat_page.everything()
        await chat_page.page.reload()


@pytest.mark.requirement("UI-01")
async def test_hostile_words_stay_words_and_nothing_leaves_the_page(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    def read(path: str) -> str:
        """Reads."""
        return HOSTILE

    call = CallPiece("0", '{"path": "</pre><img src=x onerror=window.broken=5>"}', name="read", call_id="c")
    chat = await open_chat([ThinkingPiece(HOSTILE), HOSTILE, call], HOSTILE, tools=[read])
    await chat_page.open(chat.base_url)
    await chat_page.ask(HOSTILE)
    for _ in range(2):
        await expect(chat_page.answers()).to_have_count(2)
        await expect(chat_page.threads()).to_contain_text("<img src=x")
        assert await chat_page.texts("user") == [HOSTILE]
        assert await chat_page.texts("assistant") == [HOSTILE, HOSTILE]
        assert await chat_page.page.locator("main img, main script, main a, main li svg").count() == 0
        assert await chat_page.page.evaluate("window.broken") is None
        await chat_page.page.reload()
    assert chat_page.complaints == []
    assert chat_page.foreign_requests() == []


@pytest.mark.requirement("UI-01", "UI-04")
async def test_parts_of_a_message_are_shown_as_what_they_are(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat("I see.", inputs=frozenset({"image", "document"}))
    parts = [
        {"type": "text", "text": "Look at this: "},
        {"type": "image", "source": {"type": "data", "value": PIXEL, "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "https://elsewhere.test/cat.png"}},
        {
            "type": "document",
            "source": {"type": "data", "value": "cGRm", "mimeType": "application/pdf"},
            "metadata": {"filename": "plan.pdf"},
        },
        {"type": "text", "text": "what is it?"},
    ]
    await chat.run("t", user(parts))
    await chat_page.open(chat.base_url, "t")
    await chat_page.sees("I see.")
    assert await chat_page.texts("user") == ["Look at this: what is it?"]
    picture = chat_page.messages("user").get_by_role("img")
    assert await picture.evaluate("async one => (await one.decode(), one.naturalWidth)") == 1
    await expect(chat_page.messages("user").get_by_role("link")).to_have_text(
        "Image: https://elsewhere.test/cat.png"
    )
    await expect(chat_page.messages("user").get_by_text("Document: plan.pdf")).to_be_visible()
    shown = await chat_page.everything()
    assert "cGRm" not in shown
    assert PIXEL not in shown
    assert "[object Object]" not in shown


@pytest.mark.requirement("UI-04")
async def test_reasoning_and_tool_calls_are_folded_beside_the_answer(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    def double(number: int) -> int:
        """Doubles."""
        if number < 0:
            raise ValueError
        return 2 * number

    calls = [
        CallPiece("0", '{"number": 21}', name="double", call_id="c0"),
        CallPiece("1", '{"number": -1}', name="double", call_id="c1"),
        Finished(StopReason.TOOL_USE),
    ]
    chat = await open_chat([ThinkingPiece("Let me think."), *calls], "It is 42.", tools=[double])
    await chat_page.open(chat.base_url)
    await chat_page.ask("21, twice?")
    await chat_page.sees("It is 42.")
    reasoning = chat_page.messages("reasoning").get_by_text("Let me think.")
    await expect(reasoning).to_be_hidden()
    await chat_page.page.get_by_text("Reasoning").click()
    await expect(reasoning).to_be_visible()
    fine, failed = chat_page.cards().first, chat_page.cards().last
    await expect(fine.get_by_text("42")).to_be_hidden()
    await fine.locator("summary").click()
    await expect(fine.get_by_text('"number": 21')).to_be_visible()
    await expect(fine.get_by_text("42")).to_be_visible()
    await expect(failed.locator("summary")).to_contain_text("failed")
    await expect(fine.locator("summary")).not_to_contain_text("failed")
