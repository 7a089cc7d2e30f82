"""The event stream response: ready bytes, keep-alive, and the seam with the library beneath it."""

import asyncio
import inspect
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from sse_starlette import EventSourceResponse
from starlette.types import Message

from app.api.streams import KEEP_ALIVE, KEEP_ALIVE_SECONDS, EventStream
from app.main import TICK_SECONDS
from tests.services.chat import OpenChat
from tests.services.sse import blocks


async def nothing() -> None:
    return


class Wire:
    """An ASGI connection whose client stays."""

    def __init__(self) -> None:
        self.sent: list[Message] = []

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def receive(self) -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.sent if message["type"] == "http.response.body"]


SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}


@pytest.mark.requirement("AGUI-03")
async def test_a_silent_stream_gets_a_comment_and_a_busy_one_does_not() -> None:
    time = 100.0

    async def pieces() -> AsyncGenerator[bytes]:
        nonlocal time
        yield b"data: 1\n\n"
        time += KEEP_ALIVE_SECONDS - 0.1
        yield b""
        time += 0.1
        yield b""
        time += KEEP_ALIVE_SECONDS - 0.1
        yield b""
        yield b"data: 2\n\n"
        time += KEEP_ALIVE_SECONDS - 0.1
        yield b""

    wire = Wire()
    stream = EventStream(pieces(), on_shutdown=nothing, now=lambda: time)
    await stream(SCOPE, wire.receive, wire.send)
    assert wire.bodies == [b"data: 1\n\n", KEEP_ALIVE, b"data: 2\n\n", b""]
    assert KEEP_ALIVE.startswith(b":")
    assert b"\r" not in KEEP_ALIVE


@pytest.mark.requirement("AGUI-03")
async def test_a_run_that_is_silent_keeps_its_stream_alive(
    open_chat: OpenChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.main.TICK_SECONDS", 0.01)
    monkeypatch.setattr("app.api.streams.KEEP_ALIVE_SECONDS", 0.0)
    gate = asyncio.Event()
    chat = await open_chat([gate, "at last"])
    body = chat.body("t", "go")
    async with chat.client.stream("POST", "/agents/assistant/run", json=body) as response:
        comments = 0
        async for block in blocks(response):
            comments += block.comment is not None
            if comments == 3:
                gate.set()
    assert comments >= 3


@pytest.mark.requirement("AGUI-03")
def test_no_silence_is_longer_than_fifteen_seconds() -> None:
    assert KEEP_ALIVE_SECONDS + TICK_SECONDS <= 15


async def test_when_the_server_ends_the_run_is_told_and_the_stream_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"data: 1\n\n"
        await told.wait()
        yield b"data: last\n\n"

    async def on_shutdown() -> None:
        told.set()

    async def at_once() -> None:
        return

    monkeypatch.setattr(EventSourceResponse, "_listen_for_exit_signal", staticmethod(at_once))
    wire = Wire()
    await EventStream(pieces(), on_shutdown=on_shutdown)(SCOPE, wire.receive, wire.send)
    assert wire.bodies == [b"data: 1\n\n", b"data: last\n\n", b""]


async def test_a_client_that_is_gone_at_once_is_noticed_and_the_pieces_are_closed() -> None:
    left = asyncio.Event()
    closed = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes]:
        try:
            yield b"data: 1\n\n"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def on_leave() -> None:
        left.set()

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    wire = Wire()
    await EventStream(pieces(), on_shutdown=nothing, on_leave=on_leave)(SCOPE, gone, wire.send)
    assert left.is_set()
    assert closed.is_set() or len(wire.bodies) == 0


def test_the_seam_with_the_library_is_as_we_know_it() -> None:
    """We replace its stream loop and its wait for the end; a release that renames them must not pass."""
    assert inspect.iscoroutinefunction(EventSourceResponse._stream_response)  # pyright: ignore[reportPrivateUsage]
    assert list(inspect.signature(EventSourceResponse._stream_response).parameters) == ["self", "send"]  # pyright: ignore[reportPrivateUsage]
    source = inspect.getsource(EventSourceResponse.__call__)
    for name in ("_stream_response", "_listen_for_exit_signal_with_grace", "_listen_for_disconnect"):
        assert f"self.{name}" in source
