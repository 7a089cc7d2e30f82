"""Event streams over HTTP: ready bytes from a log to one client."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from time import monotonic

from sse_starlette import EventSourceResponse
from starlette.types import Message, Send

KEEP_ALIVE = b": keep-alive\n\n"
KEEP_ALIVE_SECONDS = 10.0
"""A stream that was silent this long gets a comment at the next tick of the clock."""
SHUTDOWN_GRACE_SECONDS = 10.0

Pieces = AsyncGenerator[bytes]


class EventStream(EventSourceResponse):
    """Sends pieces of framed events as they are, each in one write that waits for the last to drain.

    An empty piece is a tick: it becomes a keep-alive comment if the stream was silent. When the server is
    told to end, `on_shutdown` is awaited, which makes the log end, and with it the stream.
    """

    def __init__(
        self,
        pieces: Pieces,
        *,
        on_shutdown: Callable[[], Awaitable[None]],
        on_leave: Callable[[], Awaitable[None]] | None = None,
        headers: Mapping[str, str] | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        async def left(_: Message) -> None:
            if on_leave is not None:
                await on_leave()

        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            pieces,
            ping=0,
            sep="\n",
            headers={"Cache-Control": "no-cache, no-transform", **(headers or {})},
            client_close_handler_callable=left,
        )
        self._pieces = pieces
        self._on_shutdown = on_shutdown
        self._now = now

    async def _stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sent_at = self._now()
        try:
            async for piece in self._pieces:
                if not piece:
                    if self._now() - sent_at < KEEP_ALIVE_SECONDS:
                        continue
                    piece = KEEP_ALIVE
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                sent_at = self._now()
        finally:
            await self._pieces.aclose()
        self.active = False
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _listen_for_exit_signal_with_grace(self) -> None:
        await self._listen_for_exit_signal()
        await self._on_shutdown()
        # The end of the stream cancels this wait; only a client that does not read makes it run out.
        await asyncio.sleep(SHUTDOWN_GRACE_SECONDS)
