"""When it was said, and by whom."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect
from pydantic import JsonValue

from app.agent.agent import Agent
from app.agent.context import RunContext
from app.agent.events import AgentEvent, MessageDone, RunDone
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.api.deps import Principal, principal
from app.conversation.messages import assistant_message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.recall import EVERYTHING, Recall
from app.main import create_app
from app.settings import Settings
from tests.browser.chat_page import ChatPage
from tests.services.chat import OpenChat
from tests.services.server import Serve


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Timeless:
    """An agent whose messages bring no time."""

    name = "assistant"
    description = ""

    def capabilities(self) -> Mapping[str, JsonValue]:
        return {}

    def accepts(self) -> frozenset[str]:
        return frozenset()

    def recall(self) -> Recall:
        return EVERYTHING

    async def respond(self, context: RunContext) -> AsyncIterator[AgentEvent]:
        said = assistant_message("Who knows when.", clock=context.clock)
        yield MessageDone(said.model_copy(update={"created_at": None}))
        yield RunDone(RunEnd.by(EndReason.DONE))


async def instants(times: Locator) -> list[str]:
    found = await times.evaluate_all("found => found.map(one => one.dateTime)")
    return [str(one) for one in found]


@pytest.mark.requirement("UI-02")
async def test_every_message_and_tool_result_shows_the_time_that_is_stored(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    call = CallPiece("0", '{"a": 1, "b": 2}', name="add", call_id="c")
    chat = await open_chat(["Let me add.", call], "Three.", tools=[add])
    await chat_page.open(chat.base_url)
    await chat_page.ask("1 + 2?")
    await chat_page.sees("Three.")
    await chat_page.idle()
    stored = {one["id"]: one["metadata"]["createdAt"] for one in await chat.messages(chat_page.thread_id())}
    result = next(one for one in await chat.messages(chat_page.thread_id()) if one["role"] == "tool")
    for _ in range(2):
        await chat_page.sees("Three.")
        feet = chat_page.page.locator("li.message > .foot time")
        assert await instants(feet) == [stored[id] for id in await chat_page.ids()]
        assert await instants(chat_page.cards().locator("summary time")) == [stored[result["id"]]]
        await expect(feet.first).to_be_visible()
        year = stored[result["id"]][:4]
        assert year in (await feet.first.get_attribute("title") or "")
        await chat_page.page.reload()


@pytest.mark.requirement("UI-02")
async def test_a_message_of_calls_alone_shows_one_time_a_call(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "waited"

    chat = await open_chat([CallPiece("0", "{}", name="wait", call_id="c")], "Done.", tools=[wait])
    await chat_page.open(chat.base_url)
    await chat_page.say("Wait.")
    times = chat_page.answers().first.locator(".time:visible")
    await expect(chat_page.cards()).to_contain_text("running…")
    await expect(times).to_have_count(1)
    (call,) = [one for one in await chat.messages(chat_page.thread_id()) if one["role"] == "assistant"]
    assert await instants(times) == [call["metadata"]["createdAt"]]
    gate.set()
    for _ in range(2):
        await chat_page.sees("Done.")
        await chat_page.idle()
        messages = await chat.messages(chat_page.thread_id())
        result = next(one for one in messages if one["role"] == "tool")
        assert await instants(times) == [result["metadata"]["createdAt"]]
        await chat_page.page.reload()


@pytest.mark.requirement("UI-02")
async def test_an_unknown_time_says_so(open_chat: OpenChat, chat_page: ChatPage) -> None:
    chat = await open_chat(agents=[Timeless()])
    await chat_page.open(chat.base_url)
    await chat_page.ask("When?")
    for _ in range(2):
        await expect(chat_page.answers()).to_contain_text("time unknown")
        await expect(chat_page.messages("user")).not_to_contain_text("time unknown")
        await chat_page.page.reload()


@pytest.mark.requirement("UI-02")
async def test_the_sender_is_shown_once_several_people_write(
    serve: Serve, tmp_path: Path, chat_page: ChatPage
) -> None:
    people = iter(["ann", "bob"])
    writing = next(people)
    agent = Agent("assistant", model=ScriptedModel(["Hello Ann.", "Hello Bob."]))
    app = create_app(Settings(data_dir=tmp_path), agents={"assistant": agent})
    app.dependency_overrides[principal] = lambda: Principal("default", writing)
    await chat_page.open(await serve(app))
    await chat_page.ask("I am Ann.")
    await expect(chat_page.messages("user")).not_to_contain_text("ann")
    writing = next(people)
    await chat_page.ask("I am Bob.")
    for _ in range(2):
        senders = chat_page.messages("user").locator(".sender:visible")
        await expect(senders).to_have_text(["ann", "bob"])
        await expect(chat_page.answers().locator(".sender:visible")).to_have_count(0)
        await chat_page.page.reload()


@pytest.mark.requirement("UI-02")
async def test_the_agent_is_named_once_several_answer(open_chat: OpenChat, chat_page: ChatPage) -> None:
    agents = [Agent(name, model=ScriptedModel([f"I am {name}."])) for name in ("clerk", "cook")]
    chat = await open_chat(agents=agents)
    await chat_page.open(chat.base_url)
    await chat_page.ask("Who is there?")
    await expect(chat_page.answers().locator(".sender:visible")).to_have_count(0)
    await chat_page.page.get_by_label("Agent").select_option("cook")
    await chat_page.ask("And who else?")
    await expect(chat_page.answers().locator(".sender:visible")).to_have_text(["clerk", "cook"])
