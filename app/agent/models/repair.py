"""Mends the event streams of providers before their client library sees them.

Servers that say they speak a provider's protocol speak it with an accent: empty data lines, missing
indices, errors inside of a good answer, streams that just stop. What the library cannot take is put right
here, on the bytes, so that all else can rely on the protocol.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Protocol

import httpx2

from app.agent.models.repair_anthropic import AnthropicRepair
from app.agent.models.repair_chat import ChatRepair
from app.agent.models.repair_responses import ResponsesRepair
from app.agent.models.sse import SseReader, written


class Repair(Protocol):
    """Mends one stream."""

    def take(self, name: str, data: str) -> Iterator[tuple[str, str]]:
        """What to pass on in place of one event."""
        ...

    def end(self) -> Iterator[tuple[str, str]]:
        """What to pass on when the bytes are at their end."""
        ...


_REPAIRS: dict[str, Callable[[], Repair]] = {
    "/chat/completions": ChatRepair,
    "/messages": AnthropicRepair,
    "/responses": ResponsesRepair,
}


def _repair_for(request: httpx2.Request) -> Repair | None:
    return next((make() for path, make in _REPAIRS.items() if request.url.path.endswith(path)), None)


class RepairedStream(httpx2.AsyncByteStream):
    """A body that is read through a repair. It is read once; a second reading goes on where the first was."""

    def __init__(self, source: httpx2.AsyncByteStream, repair: Repair) -> None:
        self._source = source
        self._repair = repair
        self._body = self._read()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body

    async def aclose(self) -> None:
        await self._body.aclose()
        await self._source.aclose()

    async def _read(self) -> AsyncGenerator[bytes, None]:
        reader = SseReader()
        async for piece in self._source:
            for name, data in reader.feed(piece):
                for event in self._repair.take(name, data):
                    yield written(*event)
        for name, data in reader.finish():
            for event in self._repair.take(name, data):
                yield written(*event)
        for event in self._repair.end():
            yield written(*event)


async def ask_for_plain_bytes(request: httpx2.Request) -> None:
    """A request hook: a compressed event stream could not be mended, and would come in lumps."""
    if _repair_for(request) is not None:
        request.headers["accept-encoding"] = "identity"


async def repair_events(response: httpx2.Response) -> None:
    """A response hook: puts the repair between the network and the library."""
    repair = _repair_for(response.request)
    kind = response.headers.get("content-type", "")
    plain = response.headers.get("content-encoding", "identity") == "identity"
    if repair is None or response.status_code != 200 or not kind.startswith("text/event-stream") or not plain:
        return
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = RepairedStream(response.stream, repair)


def repairing_client(connect_seconds: float = 10, silence_seconds: float = 600) -> httpx2.AsyncClient:
    """An HTTP client whose event streams are mended. Whoever makes it closes it."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(silence_seconds, connect=connect_seconds),
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        event_hooks={"request": [ask_for_plain_bytes], "response": [repair_events]},
    )
