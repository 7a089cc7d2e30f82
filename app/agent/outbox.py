"""What tools tell while they run."""

import asyncio

from app.agent.events import AgentEvent


class Outbox:
    """Events from tools, in the order in which they were put; safe to fill from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: list[AgentEvent] = []
        self._news: asyncio.Future[None] | None = None

    def put(self, event: AgentEvent) -> None:
        """Also from the loop's own thread it is not added at once: one queue keeps one order."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._add, event)

    def take(self) -> list[AgentEvent]:
        """What has come since the last time."""
        taken, self._events = self._events, []
        return taken

    def news(self) -> "asyncio.Future[None]":
        """Is done when there is something to take."""
        self._news = self._loop.create_future()
        if self._events:
            self._news.set_result(None)
        return self._news

    def _add(self, event: AgentEvent) -> None:
        self._events.append(event)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
