"""uvicorn, as this server needs it."""

import asyncio
import gc
import os
import socket
import sys
from contextlib import suppress

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.errors import StartupRefused
from app.settings import PREFIX, Settings

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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is there now stays, and what a run makes mostly goes without the collector's help.
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD, 20, 20)
        for address in sorted({address for server in self.servers for address in _addresses(server)}):
            print(f"Verbatim is at {address}", flush=True)


def serve(app: FastAPI, settings: Settings) -> None:
    """Serves until told to end. StartupRefused if the address cannot be had; SystemExit(2), with the reason
    in the log, if the application refuses to start."""
    listening = _listen(settings)
    config = uvicorn.Config(
        app,
        http=DrainedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=settings.log_level == "debug",
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = Server(config)
    with listening, suppress(SystemExit):
        server.run(sockets=[listening])
    if not server.started:
        sys.exit(2)


def _listen(settings: Settings) -> socket.socket:
    """The socket, before anything else is touched."""
    host, port = settings.host.strip("[]"), settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise StartupRefused(
            f"{host}:{port} cannot be listened on ({os.strerror(error.errno or 0)}). "
            f"If another program is there, set {PREFIX}PORT to a port that is free."
        ) from None


def _addresses(server: asyncio.Server) -> list[str]:
    names = [listening.getsockname()[:2] for listening in server.sockets]
    return [f"http://{f'[{host}]' if ':' in host else host}:{port}/" for host, port in names]
