"""Stopping, failing, and going on afterwards."""

import asyncio

import pytest
from playwright.async_api import expect

from app.agent.models.base import CallPiece, ModelError
from tests.browser.chat_page import ChatPage
from tests.services.chat import OpenChat, user


@pytest.mark.requirement("UI-01", "UI-05")
async def test_stop_ends_the_answer_and_marks_it_as_incomplete(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    never = asyncio.Event()
    chat = await open_chat(["Half of ", never], "Whole.")
    await chat_page.open(chat.base_url)
    await chat_page.say("Go on.")
    await chat_page.sees("Half of")
    await chat_page.page.get_by_role("button", name="Stop").click()
    await chat_page.idle()
    for _ in range(2):
        await expect(chat_page.answers()).to_contain_text("Incomplete: this was stopped.")
        assert [text.strip() for text in await chat_page.texts("assistant")] == ["Half of"]
        await chat_page.page.reload()
    await chat_page.ask("Again.")
    await chat_page.sees("Whole.")


@pytest.mark.requirement("UI-01")
async def test_an_error_is_said_in_its_public_words_and_the_next_message_works(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    chat = await open_chat(["Until here", ModelError("The model is out of paper.")], "It works again.")
    await chat_page.open(chat.base_url)
    await chat_page.say("Print.")
    await expect(chat_page.ends()).to_have_text("This answer failed: The model is out of paper.")
    await chat_page.idle()
    await expect(chat_page.page.locator("[aria-live=polite]")).to_contain_text("out of paper")
    await expect(chat_page.answers()).to_contain_text("Incomplete: the answer broke off here.")
    await chat_page.ask("And now?")
    await chat_page.sees("It works again.")
    await expect(chat_page.notice()).to_have_count(0)
    assert await chat_page.texts("user") == ["Print.", "And now?"]


@pytest.mark.requirement("UI-01")
async def test_a_turn_that_failed_or_was_stopped_without_words_is_marked_at_its_place(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    never = asyncio.Event()
    chat = await open_chat([ModelError("The model is out of paper.")], [never], "Here it is.")
    await chat_page.open(chat.base_url)
    await chat_page.say("Print.")
    await expect(chat_page.ends()).to_have_count(1)
    await chat_page.idle()
    await chat_page.say("Print again.")
    await chat_page.page.get_by_role("button", name="Stop").click()
    await expect(chat_page.ends()).to_have_count(2)
    await chat_page.idle()
    await chat_page.ask("Once more.")
    for _ in range(2):
        await chat_page.sees("Here it is.")
        shown = chat_page.page.locator("li.message > .words:visible, li.turn-end")
        await expect(shown).to_have_text(
            [
                "Print.",
                "This answer failed: The model is out of paper.",
                "Print again.",
                "Stopped",
                "Once more.",
                "Here it is.",
            ]
        )
        await expect(chat_page.notice()).to_have_count(0)
        await chat_page.page.reload()


@pytest.mark.requirement("UI-01")
async def test_a_failure_is_said_to_who_reads_further_up(open_chat: OpenChat, chat_page: ChatPage) -> None:
    gate = asyncio.Event()
    long = "\n".join(f"line {number}" for number in range(100))
    chat = await open_chat(long, [gate, ModelError("The model is out of paper.")])
    await chat_page.open(chat.base_url)
    await chat_page.ask("Print.")
    await chat_page.say("And again.")
    await expect(chat_page.page.get_by_role("button", name="Stop")).to_be_visible()
    await chat_page.page.get_by_role("region", name="Conversation").hover()
    await chat_page.page.mouse.wheel(0, -1000)
    await expect(chat_page.page.get_by_role("button", name="Jump to the latest")).to_be_visible()
    gate.set()
    await chat_page.told("The model is out of paper.")


@pytest.mark.requirement("UI-01")
async def test_a_message_to_a_busy_thread_is_given_back_with_the_reason(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    gate = asyncio.Event()
    chat = await open_chat("First.", ["Busy ", gate, "no more."])
    await chat.run("t", "one")
    await chat_page.open(chat.base_url, "t")
    await chat_page.sees("First.")
    async with chat.streaming(chat.body("t", user("from elsewhere", "u-2"))) as elsewhere:
        await elsewhere.until("TEXT_MESSAGE_CONTENT")
        await chat_page.say("Me too.")
        await chat_page.told("still answering an earlier message")
        await expect(chat_page.page.get_by_label("Message", exact=True)).to_have_value("Me too.")
        await expect(chat_page.messages("user").locator(".words")).to_have_text(["one", "from elsewhere"])
        gate.set()
        await chat_page.sees("Busy no more.")
        await elsewhere.rest()


@pytest.mark.requirement("UI-01", "UI-07")
async def test_keys_send_and_break_lines_and_a_phone_needs_no_sideways_scrolling(
    open_chat: OpenChat, chat_page: ChatPage
) -> None:
    long = "w" * 400
    call = CallPiece("0", f'{{"text": "{long}"}}', name="echo", call_id="c")

    def echo(text: str) -> str:
        """Repeats."""
        return text

    chat = await open_chat([call], f"{long}\n\nend", tools=[echo])
    await chat_page.page.set_viewport_size({"width": 360, "height": 640})
    await chat_page.open(chat.base_url)
    await expect(chat_page.page.get_by_label("Message", exact=True)).to_be_focused()
    for part in ("one", "Shift+Enter", "two", "Enter"):
        if part.endswith("Enter"):
            await chat_page.page.keyboard.press(part)
        else:
            await chat_page.page.keyboard.type(part)
    await chat_page.sees("end")
    assert await chat_page.texts("user") == ["one\ntwo"]
    await chat_page.cards().locator("summary").click()
    for box in ("documentElement", "querySelector('#scroll')"):
        width, room = await chat_page.page.evaluate(
            f"[document.{box}.scrollWidth, document.{box}.clientWidth]"
        )
        assert width <= room, box
    await expect(chat_page.page.get_by_role("link", name="New chat")).to_be_hidden()
    await chat_page.page.get_by_role("button", name="Conversations", exact=True).press("Enter")
    await expect(chat_page.page.get_by_role("link", name="New chat")).to_be_focused()
    await chat_page.page.keyboard.press("Escape")
    await expect(chat_page.page.get_by_role("link", name="New chat")).to_be_hidden()
    await expect(chat_page.page.locator("[aria-live=polite]")).to_contain_text("end")
