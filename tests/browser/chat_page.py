"""The embedded page as a person uses it."""

from urllib.parse import quote

from playwright.async_api import ConsoleMessage, Locator, Page, expect

BOUND = 15_000
"""Milliseconds that anything on the page may take."""


class ChatPage:
    """Reads what is to be seen and does what a person can do."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.base_url = ""
        self.requested: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(BOUND)
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("console", self._on_console)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def foreign_requests(self) -> list[str]:
        own = (f"{self.base_url}/", "data:", "blob:")
        return [url for url in self.requested if not url.startswith(own)]

    # Doing

    async def open(self, base_url: str, thread: str | None = None) -> None:
        """Opens the page, at a thread's own address if one is named."""
        self.base_url = base_url
        await self.page.goto(
            f"{base_url}/" if thread is None else f"{base_url}/#/threads/{quote(thread, '')}"
        )

    async def say(self, text: str) -> None:
        """Writes a message and sends it, without waiting for the answer."""
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.get_by_label("Message", exact=True).press("Enter")

    async def ask(self, text: str) -> None:
        """Sends a message and waits for the end of its run."""
        answered = await self.answers().count()
        await self.say(text)
        await self.answers().nth(answered).wait_for(state="attached")
        await self.idle()

    async def idle(self) -> None:
        """Waits until nothing runs on the open thread."""
        await self.page.get_by_role("button", name="Send").wait_for()

    # Seeing

    def messages(self, role: str) -> Locator:
        return self.page.locator(f"li.message.{role}")

    def answers(self) -> Locator:
        return self.messages("assistant")

    def cards(self) -> Locator:
        return self.page.locator("details.tool")

    def ends(self) -> Locator:
        """The marks at turns that failed or were stopped."""
        return self.page.locator("li.turn-end")

    def notice(self) -> Locator:
        return self.page.locator(".notice:visible")

    def threads(self) -> Locator:
        return self.page.get_by_role("navigation", name="Conversations").get_by_role("listitem")

    async def texts(self, role: str) -> list[str]:
        """The words of every message of a role that has any."""
        return await self.page.locator(f"li.message.{role} > .words:visible").all_inner_texts()

    async def ids(self) -> list[str]:
        """The ids of the messages on the page, in order."""
        found = await self.page.locator("li.message").evaluate_all(
            "found => found.map(one => one.dataset.id)"
        )
        return [str(one) for one in found]

    async def everything(self) -> str:
        """All text on the page, in folded cards too."""
        return str(await self.page.evaluate("document.documentElement.textContent"))

    def thread_id(self) -> str:
        """The id in the address."""
        return self.page.url.rsplit("/", 1)[1]

    async def sees(self, words: str) -> None:
        """Waits until an answer holds these words."""
        await self._once(self.answers().filter(has_text=words))

    async def told(self, words: str) -> None:
        """Waits until the page says these words of its own."""
        await self._once(self.notice().filter(has_text=words))

    async def _once(self, found: Locator) -> None:
        """Waits until there is exactly one. An expectation alone looks only now and then."""
        await found.first.wait_for(state="attached")
        await expect(found).to_have_count(1, timeout=BOUND)
