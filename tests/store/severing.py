"""A line to a PostgreSQL server that breaks around a COMMIT, as a network or a dying server breaks it."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

_SOCKET = ".s.PGSQL.5432"
_TERMINATE = b"X\0\0\0\4"
Meanwhile = Callable[[], Awaitable[object]]


class SeveringLine:
    """Passes everything on until it is told to break, which it does once, at the next COMMIT.

    With `stays_down` it takes no connection from then on, until `repair`.
    """

    def __init__(self, url: str, directory: str) -> None:
        (host,) = parse_qs(urlsplit(url).query)["host"]
        self.url = url.replace(host, directory)
        self.path = Path(directory) / _SOCKET
        self._server = Path(host) / _SOCKET
        self._break: Callable[[StreamReader, StreamWriter, bytes], Awaitable[object]] | None = None
        self._stays_down = False
        self._is_down = False

    def lose_the_answer(self, *, stays_down: bool = False) -> None:
        """The server gets the COMMIT and does it; its answer is lost."""
        self._stays_down = stays_down

        async def finish(answers: StreamReader, server: StreamWriter, commit: bytes) -> None:
            server.write(commit + _TERMINATE)
            while await answers.read(1 << 16):
                pass

        self._break = finish

    def lose_the_commit(self, meanwhile: Meanwhile | None = None) -> None:
        """The server never gets the COMMIT, and undoes its work. Then `meanwhile` is done."""

        async def undo(answers: StreamReader, server: StreamWriter, commit: bytes) -> None:
            server.close()
            if meanwhile is not None:
                await meanwhile()

        self._break = undo

    def repair(self) -> None:
        """Takes connections again."""
        self._is_down = False

    async def serve(self, requests: StreamReader, client: StreamWriter) -> None:
        """One connection, until either side ends it."""
        if self._is_down:
            client.close()
            return
        answers, server = await asyncio.open_unix_connection(str(self._server))
        back = asyncio.create_task(_pass_on(answers, client))
        while data := await requests.read(1 << 16):
            breaks = self._break if b"COMMIT" in data else None
            if breaks is not None:
                self._break, self._is_down = None, self._stays_down
                back.cancel()
                await asyncio.wait((back,))
                await breaks(answers, server, data)
                break
            server.write(data)
        client.close()
        server.close()
        await asyncio.wait((back,))


async def _pass_on(answers: StreamReader, client: StreamWriter) -> None:
    while data := await answers.read(1 << 16):
        client.write(data)
    client.close()


@asynccontextmanager
async def severing_line(url: str) -> AsyncGenerator[SeveringLine]:
    """A line to the database of `url`, for as long as the context lasts."""
    with TemporaryDirectory(prefix="severing-") as directory:
        line = SeveringLine(url, directory)
        server = await asyncio.start_unix_server(line.serve, str(line.path))
        try:
            yield line
        finally:
            server.close()
