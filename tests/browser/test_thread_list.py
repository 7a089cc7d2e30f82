"""The list of conversations."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.browser.chat_page import ChatPage
from tests.services.chat import OpenChat


@pytest.mark.requirement("UI-03", "AGUI-14")
async def test_hidden_threads_show_behind_their_switch_alone(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat("seen", "kept back")
    await chat.run("plain", "A plain one")
    await chat.run("secret", "A hidden one", forwardedProps={"conversation": {"hidden": True}})
    await chat_page.open(chat.base_url)
    await expect(chat_page.threads()).to_have_count(1)
    await expect(chat_page.threads()).to_contain_text("A plain one")
    switch = chat_page.page.get_by_role("switch", name="Show hidden")
    await switch.check(force=True)
    await expect(chat_page.threads()).to_have_count(2)
    await expect(chat_page.threads().first).to_contain_text("A hidden one")
    await expect(chat_page.threads().first).to_contain_text("hidden")
    await switch.uncheck(force=True)
    await expect(chat_page.threads()).to_have_count(1)
    asked = [url for url in chat_page.requested if "include_hidden" in url]
    assert asked == [f"{chat.base_url}/threads?limit=50&include_hidden=true"]
    await chat_page.open(chat.base_url, "secret")
    await chat_page.sees("kept back")


@pytest.mark.requirement("UI-03")
async def test_a_thread_is_opened_by_its_link_renamed_and_deleted(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat("one", "two")
    await chat_page.open(chat.base_url)
    await chat_page.ask("The first")
    first = chat_page.page.url
    await chat_page.page.get_by_role("link", name="New chat").click()
    await expect(chat_page.answers()).to_have_count(0)
    await chat_page.ask("The second")
    await expect(chat_page.threads()).to_have_count(2)
    await chat_page.page.goto(first)
    await chat_page.sees("one")
    await expect(chat_page.threads().locator("[aria-current=page]")).to_contain_text("The first")
    await chat_page.page.get_by_role("button", name="Rename").click()
    await chat_page.page.get_by_label("Title").fill("Renamed")
    await chat_page.page.keyboard.press("Enter")
    await expect(chat_page.page.get_by_role("heading", level=1)).to_have_text("Renamed")
    await expect(chat_page.threads().locator("[aria-current=page]")).to_contain_text("Renamed")
    await chat_page.page.get_by_role("button", name="Delete").click()
    await chat_page.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(chat_page.threads()).to_have_count(1)
    await expect(chat_page.threads()).to_contain_text("The second")
    await chat_page.page.goto(first)
    await chat_page.told("There is no such conversation.")
    await expect(chat_page.page.get_by_text("Loading…")).to_be_hidden()


@pytest.mark.requirement("UI-03")
async def test_a_thread_that_is_answering_is_marked_until_it_is_done(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    gate = asyncio.Event()
    chat = await open_chat([gate, "done"])
    await chat_page.open(chat.base_url)
    await chat_page.say("Take your time")
    await expect(chat_page.threads()).to_contain_text("answering")
    await expect(chat_page.threads().locator("time")).to_have_text("just now")
    await chat_page.page.get_by_role("link", name="New chat").click()
    gate.set()
    await expect(chat_page.threads()).not_to_contain_text("answering")


@pytest.mark.requirement("UI-03")
async def test_what_was_said_elsewhere_is_there_when_the_page_comes_into_view(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat("one", "two")
    await chat_page.open(chat.base_url)
    await chat_page.ask("From here")
    await chat_page.page.get_by_role("heading", level=1).filter(has_text="From here").wait_for()
    await chat.run(chat_page.thread_id(), "From elsewhere")
    await chat_page.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await chat_page.sees("two")
    assert await chat_page.texts("user") == ["From here", "From elsewhere"]
