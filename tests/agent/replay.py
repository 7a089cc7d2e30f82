"""A provider that answers with recorded bytes, over HTTP on loopback."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Recording:
    """One response: `body` in writes of `split` bytes (all at once if None), then how it ends."""

    body: bytes
    split: int | None = None
    end: Literal["close", "reset", "hang"] = "close"
    status: int = 200
    kind: str = "text/event-stream"


@dataclass(slots=True)
class Provider:
    """Gives the recordings in turn, the last one for every further request, and keeps what it was sent."""

    recordings: Sequence[Recording]
    bodies: list[bytes] = field(default_factory=list[bytes])
    paths: list[str] = field(default_factory=list[str])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed the connection of a response that hung."""
    address: str = ""

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._read(reader)
            recording = self.recordings[min(len(self.bodies), len(self.recordings)) - 1]
            await self._answer(recording, reader, writer)
        except ConnectionError:
            self.gone.set()
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        self.paths.append(head[0].split(" ")[1])
        self.headers.append(headers)
        self.bodies.append(await reader.readexactly(int(headers.get("content-length", "0"))))

    async def _answer(
        self, recording: Recording, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (
            f"HTTP/1.1 {recording.status} OK\r\ncontent-type: {recording.kind}\r\nconnection: close\r\n\r\n"
        )
        writer.write(head.encode())
        step = recording.split or len(recording.body) or 1
        for at in range(0, len(recording.body), step):
            writer.write(recording.body[at : at + step])
            await writer.drain()
            if recording.split:
                await asyncio.sleep(0)
        if recording.end == "hang":
            await reader.read()
            self.gone.set()
        elif recording.end == "reset":
            await asyncio.sleep(0.02)
            line = writer.get_extra_info("socket")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


@asynccontextmanager
async def provider(*recordings: Recording) -> AsyncGenerator[Provider]:
    """A running provider; `address` is its base URL without a path."""
    made = Provider(recordings)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    made.address = f"http://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
