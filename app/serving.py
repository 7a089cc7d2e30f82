"""uvicorn, as this server needs it."""

import asyncio
import gc
from socket import socket

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.settings import Settings

SHUTDOWN_SECONDS = 15
"""How long open connections may take to end once their runs have."""

GC_THRESHOLD = 10_000
"""New objects between two looks of the garbage collector at the young ones."""


class DrainedProtocol(HttpToolsProtocol):
    """Waits for each write to leave before it takes the next: a client that does not read holds one write in
    memory, and not a buffer full of them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)


class Server(uvicorn.Server):
    """Says where the page is once it listens."""

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        # What is there now stays, and what a run makes mostly goes without the collector's help.
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 20, 20)
        for address in sorted({address for server in self.servers for address in _addresses(server)}):
            print(f"Verbatim is at {address}", flush=True)


def serve(app: FastAPI, settings: Settings) -> None:
    """Serves until told to end."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=DrainedProtocol,
        ws="none",
        lifespan="on",
        log_level=settings.log_level,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    Server(config).run()


def _addresses(server: asyncio.Server) -> list[str]:
    names = [listening.getsockname()[:2] for listening in server.sockets]
    return [f"http://{f'[{host}]' if ':' in host else host}:{port}/" for host, port in names]
