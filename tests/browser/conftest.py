"""The page in a real browser, watched: whatever it asks for and whatever it complains of is kept."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page

from tests.browser.chat_page import ChatPage
from tests.browser.line import Line


@pytest.fixture
async def chat_page(page: Page) -> AsyncIterator[ChatPage]:
    """A page that is opened by the test. Afterwards nothing may have left its origin, and nothing may have
    been complained of but answers with an error status, which a test asks for on purpose."""
    watched = ChatPage(page)
    yield watched
    assert watched.foreign_requests() == []
    complaints = [text for text in watched.complaints if not text.startswith("Failed to load resource")]
    assert complaints == []


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    """A connection to a server that can be cut."""
    made = Line()
    yield made
    await made.close()
