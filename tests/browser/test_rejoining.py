"""Leaving in the middle and coming back: nothing is lost and nothing is there twice."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import expect

from app.agent.models.base import CallPiece, ThinkingPiece
from app.agent.models.scripted import Piece
from tests.browser.chat_page import ChatPage
from tests.browser.line import Line
from tests.services.chat import Chat, OpenChat


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def script(gate: asyncio.Event) -> list[list[Piece]]:
    """Thinks, calls a tool, answers, and waits in the middle of the answer."""
    call = CallPiece("0", '{"a": 1, "b": 2}', name="add", call_id="c")
    return [
        ["Earlier."],
        [ThinkingPiece("Hm."), "Let me add. ", call],
        ["The sum ", gate, "is three."],
    ]


async def stored(chat: Chat, thread: str) -> tuple[list[str], list[Any]]:
    """The ids that the page has a list item for, and the texts of the answers."""
    messages = await chat.messages(thread)
    answers = [one["content"] for one in messages if one["role"] == "assistant" and one.get("content")]
    return [one["id"] for one in messages if one["role"] != "tool"], answers


async def same(chat: Chat, chat_page: ChatPage) -> None:
    """The page holds what is stored, in order and once."""
    ids, answers = await stored(chat, chat_page.thread_id())
    assert await chat_page.ids() == ids
    assert [text.strip() for text in await chat_page.texts("assistant")] == [text.strip() for text in answers]
    await expect(chat_page.cards()).to_have_count(1)
    assert await chat_page.cards().locator("pre").all_text_contents() == ['{\n  "a": 1,\n  "b": 2\n}', "3"]


@pytest.mark.requirement("UI-01", "UI-06")
async def test_a_reload_in_the_middle_and_after_keeps_everything_once(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    gate = asyncio.Event()
    chat = await open_chat(*script(gate), tools=[add])
    await chat_page.open(chat.base_url)
    await chat_page.ask("Before.")
    await chat_page.say("1 + 2?")
    await chat_page.sees("The sum")
    await chat_page.page.reload()
    await chat_page.sees("The sum")
    assert await chat_page.texts("user") == ["Before.", "1 + 2?"]
    assert [text.strip() for text in await chat_page.texts("assistant")] == [
        "Earlier.",
        "Let me add.",
        "The sum",
    ]
    await expect(chat_page.page.get_by_role("button", name="Stop")).to_be_visible()
    gate.set()
    await chat_page.sees("The sum is three.")
    await chat_page.idle()
    await same(chat, chat_page)
    await chat_page.page.reload()
    await chat_page.sees("The sum is three.")
    await same(chat, chat_page)


@pytest.mark.requirement("UI-06")
async def test_a_lost_connection_is_said_and_made_again_where_it_broke(
    open_chat: OpenChat, chat_page: ChatPage, line: Line
) -> None:
    gate = asyncio.Event()
    chat = await open_chat(*script(gate), tools=[add])
    await chat_page.open(await line.to(chat.base_url))
    await chat_page.ask("Before.")
    await chat_page.say("1 + 2?")
    await chat_page.sees("The sum")
    line.cut()
    await chat_page.told("The connection is lost.")
    async with chat.following(f"/threads/{chat_page.thread_id()}/stream") as stream:
        gate.set()
        await stream.until("RUN_FINISHED")
    line.mend()
    await chat_page.sees("The sum is three.")
    await chat_page.idle()
    await expect(chat_page.notice()).to_have_count(0)
    await same(chat, chat_page)


@pytest.mark.requirement("UI-06")
async def test_a_turn_whose_answer_got_lost_is_not_said_twice(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat("I heard you.")
    posted: list[str] = []

    async def lose(route: Any) -> None:
        posted.append(route.request.url)
        await chat.client.post("/agents/assistant/run", json=route.request.post_data_json)
        await route.abort("connectionreset")

    await chat_page.page.route("**/agents/assistant/run", lose)
    await chat_page.open(chat.base_url)
    await chat_page.ask("Once.")
    await chat_page.sees("I heard you.")
    assert await chat_page.texts("user") == ["Once."]
    assert [text for _, text in await chat.texts(chat_page.thread_id())] == ["Once.", "I heard you."]
    assert len(posted) == 1


@pytest.mark.requirement("UI-06")
async def test_a_run_told_again_from_its_first_event_changes_nothing(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    gate = asyncio.Event()
    gate.set()
    chat = await open_chat(*script(gate), tools=[add])
    await chat.run("t", "Before.")
    told = [frame.data for frame in await chat.run("t", "1 + 2?") if frame.data]
    await chat_page.open(chat.base_url)
    twice = """async (events) => {
        const { Conversation } = await import("/conversation.js");
        const held = new Conversation(() => {});
        for (const event of events) held.apply(event);
        const once = JSON.stringify(held.messages);
        for (const event of events.slice(0, -4)) held.apply(event);
        for (const event of events) held.apply(event);
        return [once, JSON.stringify(held.messages)];
    }"""
    once, again = await chat_page.page.evaluate(twice, told)
    assert once == again
    assert once.count("Let me add.") == 1
    assert once.count("The sum is three.") == 1


@pytest.mark.requirement("UI-06")
async def test_older_messages_load_upwards_and_what_is_in_view_stays(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat(*[f"answer {number}" for number in range(45)])
    for number in range(45):
        await chat.run("t", f"question {number}")
    await chat_page.open(chat.base_url, "t")
    await chat_page.sees("answer 44")
    last = chat_page.answers().filter(has_text="answer 44")
    await expect(last).to_be_in_viewport()
    assert len(await chat_page.ids()) == 50
    anchor = chat_page.page.locator("li.message").first
    id = await anchor.get_attribute("data-id")
    moved = """async (id) => {
        const anchor = document.querySelector(`[data-id="${id}"]`);
        document.querySelector("#scroll").scrollTop = 40;
        const before = anchor.getBoundingClientRect().top;
        while (document.querySelectorAll("li.message").length < 90) await new Promise(requestAnimationFrame);
        return Math.abs(anchor.getBoundingClientRect().top - before);
    }"""
    assert await chat_page.page.evaluate(moved, id) < 2
    assert await chat_page.ids() == [one["id"] for one in await chat.messages("t")]
    await expect(chat_page.page.get_by_role("button", name="Load earlier messages")).to_be_hidden()
