"""An open page whose server ends in the middle of an answer."""

import signal

import httpx
import pytest
from playwright.async_api import expect

from tests.browser.chat_page import BOUND, ChatPage
from tests.services.server import Launch, free_port

SAID = "Tell me a long story slowly."


@pytest.mark.requirement("UI-01", "UI-06")
async def test_after_a_crash_an_open_page_shows_what_is_stored_and_says_what_was_lost(
    launch: Launch, chat_page: ChatPage
) -> None:
    port = str(free_port())
    server = await launch(PORT=port)
    await chat_page.open(server.base_url)
    await chat_page.ask("hello")
    await chat_page.say(SAID)
    story = chat_page.answers().nth(1).locator(".words")
    await expect(story).not_to_be_empty(timeout=BOUND)
    begun = (await story.inner_text()).strip()
    await server.kill()
    await chat_page.told("The connection is lost.")
    await expect(story).to_contain_text(begun)
    await launch(PORT=port)
    await chat_page.told("its unfinished words were lost")
    for _ in range(2):
        await expect(chat_page.ends()).to_have_text(
            "This answer failed: The server restarted while this run was answering. Finished work is kept."
        )
        await _shows_what_is_stored(chat_page, "user", "assistant", "user")
        await chat_page.page.reload()
    await expect(chat_page.ends()).to_have_count(1)
    await chat_page.ask("hello again")
    await expect(chat_page.notice()).to_have_count(0)


@pytest.mark.requirement("UI-01", "UI-06")
async def test_after_an_orderly_restart_an_open_page_keeps_the_words_that_were_stored(
    launch: Launch, chat_page: ChatPage
) -> None:
    port = str(free_port())
    server = await launch(PORT=port)
    await chat_page.open(server.base_url)
    await chat_page.ask("hello")
    await chat_page.say(SAID)
    await expect(chat_page.answers().nth(1).locator(".words")).not_to_be_empty(timeout=BOUND)
    server.send(signal.SIGTERM)
    await server.ended()
    await expect(chat_page.ends()).to_contain_text("The server is shutting down")
    await chat_page.idle()
    await launch(PORT=port)
    for _ in range(2):
        await expect(chat_page.ends()).to_contain_text("The server is shutting down")
        await expect(chat_page.notice()).to_have_count(0, timeout=BOUND)
        await expect(chat_page.answers().nth(1)).to_contain_text("Incomplete")
        await _shows_what_is_stored(chat_page, "user", "assistant", "user", "assistant")
        await chat_page.page.reload()


async def _shows_what_is_stored(chat_page: ChatPage, *roles: str) -> None:
    address = f"{chat_page.base_url}/threads/{chat_page.thread_id()}/messages"
    async with httpx.AsyncClient(trust_env=False) as client:
        stored = (await client.get(address)).json()["messages"]
    assert [one["role"] for one in stored] == list(roles)
    assert await chat_page.ids() == [one["id"] for one in stored]
    said = [one["content"].strip() for one in stored if one["role"] == "assistant"]
    assert [text.strip() for text in await chat_page.texts("assistant")] == said
    await expect(chat_page.page.locator("#transcript")).not_to_contain_text("time unknown")
