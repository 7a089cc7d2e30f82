"""A line between a browser and a server that can be cut and mended."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit


class Line:
    """Passes bytes on both ways. While it is cut every connection is gone and no new one holds."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._target = ("", 0)
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()

    async def to(self, base_url: str) -> str:
        """The base URL under which the server is reached by this line."""
        parts = urlsplit(base_url)
        self._target = (str(parts.hostname), int(parts.port or 80))
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = False

    async def close(self) -> None:
        """Ends the line and whatever passes on it."""
        self.cut()
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass(reader, writer), name="line")
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        if self._is_cut:
            writer.transport.abort()
            self._open.discard(writer)
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        self._open.add(far_writer)
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self._open.discard(writer)
