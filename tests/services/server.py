"""The real server: inside the test's loop for speed, or as a process of its own to be killed."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp

from app.serving import DrainedProtocol

Serve = Callable[[ASGIApp], Awaitable[str]]
Launch = Callable[..., Awaitable["ServerProcess"]]
START_BOUND = 30.0
"""Seconds that a start or an end may take."""


class _Server(uvicorn.Server):
    """A uvicorn that leaves the signals to pytest."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class NotStarted(Exception):
    """The server gave up while it started; the message says what it wrote."""


def _loopback() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


async def _run(server: _Server, listening: socket.socket) -> None:
    try:
        await server.serve(sockets=[listening])
    except SystemExit as exit:  # uvicorn's answer to a failed start; it would take the loop along
        raise NotStarted("the application did not start; its log tells why") from exit
    finally:
        listening.close()


@dataclass(slots=True)
class _Served:
    server: _Server
    task: asyncio.Task[None]

    async def started(self) -> None:
        async with asyncio.timeout(START_BOUND):
            while not self.server.started:
                if self.task.done():
                    await self.task
                    raise NotStarted("the server ended before it had started")
                await asyncio.sleep(0.005)

    async def stopped(self) -> None:
        self.server.should_exit = True
        await self.task


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`await serve(app)` runs an app on a free loopback port, in this loop, and gives its base URL."""
    running: list[_Served] = []

    async def start(app: ASGIApp) -> str:
        listening = _loopback()
        port = int(listening.getsockname()[1])
        config = uvicorn.Config(
            app,
            lifespan="on",
            http=DrainedProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        server = _Server(config)
        served = _Served(server, asyncio.create_task(_run(server, listening), name=f"server on {port}"))
        running.append(served)
        await served.started()
        return f"http://127.0.0.1:{port}"

    yield start
    for served in reversed(running):
        if not served.task.done():
            await served.stopped()


@dataclass(slots=True)
class ServerProcess:
    """`python -m app`, running."""

    base_url: str
    process: asyncio.subprocess.Process
    log: Path

    @property
    def output(self) -> str:
        """All that it wrote so far, to either stream."""
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, and does not wait."""
        self.process.send_signal(number)

    async def ended(self, bound: float = START_BOUND) -> int:
        """Waits for its end; the exit code, negative for the signal that ended it."""
        return await asyncio.wait_for(self.process.wait(), bound)

    async def kill(self) -> None:
        """Ends it as a power cut would."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def ready(self) -> None:
        """Waits until `/healthz` answers; NotStarted, with what it wrote, if it ends before."""
        async with asyncio.timeout(START_BOUND), httpx.AsyncClient(trust_env=False) as client:
            while not await self._answers(client):
                if self.process.returncode is not None:
                    raise NotStarted(f"exit code {self.process.returncode}: {self.output}")
                await asyncio.sleep(0.02)

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        try:
            return (await client.get(f"{self.base_url}/healthz")).is_success
        except httpx.TransportError:
            return False


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Ours without any setting of the server, and then the given ones; names without the prefix.

    The keys and addresses of model providers are taken out too, and given under the names they have.
    """
    dropped = ("VERBATIM_", "OPENAI_", "ANTHROPIC_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    plain = {name: value for name, value in settings.items() if name.startswith(dropped)}
    ours = {f"VERBATIM_{name}": value for name, value in settings.items() if name not in plain}
    return {**kept, "PYTHONUNBUFFERED": "1", **plain, **ours}


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with _loopback() as listening:
        return int(listening.getsockname()[1])


async def _spawn(folder: Path, log: Path, arguments: tuple[str, ...], settings: dict[str, str]):
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app",
            *arguments,
            cwd=folder,
            env=environment(settings),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )


@pytest.fixture
async def launch(tmp_path: Path) -> AsyncIterator[Launch]:
    """`await launch(DATA_DIR=…, …)` starts `python -m app` and waits until it answers.

    Settings are named without the prefix; provider settings (`OPENAI_BASE_URL`) as they are. The process
    works in the test's own folder, where its data is too unless DATA_DIR says otherwise. With `arguments`
    it is another command of the server, and nothing is waited for.
    """
    running: list[ServerProcess] = []

    async def start(*arguments: str, **settings: str) -> ServerProcess:
        settings = {"PORT": str(free_port()), "DATA_DIR": str(tmp_path / "data"), **settings}
        log = tmp_path / f"server-{len(running)}.log"
        process = await _spawn(tmp_path, log, arguments, settings)
        server = ServerProcess(f"http://127.0.0.1:{settings['PORT']}", process, log)
        running.append(server)
        if not arguments:
            await server.ready()
        return server

    yield start
    for server in running:
        await server.kill()
