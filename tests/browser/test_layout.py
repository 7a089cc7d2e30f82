"""What scrolls and what stays where it is."""

import pytest
from playwright.async_api import expect

from app.agent.models.base import CallPiece
from tests.browser.chat_page import ChatPage
from tests.services.chat import OpenChat

SIZES = [(1000, 700), (360, 640)]


def look() -> str:
    """Looks."""
    return "\n".join(f"row {number}" for number in range(60))


@pytest.mark.requirement("UI-07")
@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_a_long_conversation_scrolls_inside_the_page_and_never_the_page(
    open_chat: OpenChat, chat_page: ChatPage, width: int, height: int
) -> None:
    rounds = 12
    call = CallPiece("0", "{}", name="look", call_id="c")
    replies = [reply for number in range(rounds) for reply in ([call], f"answer {number}\n\n" * 4)]
    chat = await open_chat(*replies, tools=[look])
    for number in range(rounds):
        await chat.run("t", f"question {number}")
    for number in range(rounds):
        await chat.client.post("/threads", json={"threadId": f"other-{number}", "title": f"Other {number}"})
    await chat_page.page.set_viewport_size({"width": width, "height": height})
    await chat_page.open(chat.base_url, "t")
    await chat_page.sees(f"answer {rounds - 1}")
    await expect(chat_page.page.locator("#threads > li")).to_have_count(rounds + 1)
    await chat_page.cards().last.locator("summary").click()
    assert await chat_page.page.evaluate("document.querySelector('#scroll').scrollHeight") > 2 * height
    assert await chat_page.page.evaluate("document.scrollingElement.scrollHeight") <= height
    await chat_page.page.evaluate("document.querySelector('#scroll').scrollTop = 1e6")
    await chat_page.page.get_by_label("Message", exact=True).hover()
    for _ in range(3):
        await chat_page.page.mouse.wheel(0, 900)
        await chat_page.page.evaluate("new Promise(requestAnimationFrame)")
    await chat_page.page.evaluate("scrollTo(0, 1e6)")
    assert await chat_page.page.evaluate("scrollY") == 0
    await expect(chat_page.page.get_by_role("heading", level=1)).to_be_in_viewport(ratio=1)
