"""Servers under measurement: each a process of its own on the first core, the client on the last."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil

from tests.services.cache import cached
from tests.services.server import environment, free_port

SERVERS = Path(__file__).parent / "servers"
ROOT = Path(__file__).parents[2]
PEER = "agent-framework-ag-ui==1.7.0"


def peer_python() -> str:
    """The Python of an environment that holds the peer; made once, in the cache."""

    def build(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        python = folder / "env" / "bin" / "python"
        packages = [PEER, "uvicorn", "uvloop", "httptools", "fastapi"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)

    return str(cached("peer", PEER.encode(), build) / "env" / "bin" / "python")


@dataclass(slots=True)
class Measured:
    """A server whose CPU time and memory can be read."""

    base_url: str
    process: psutil.Process
    client: httpx.AsyncClient

    def cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system

    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    async def run(self, text: str, thread: str | None = None) -> int:
        """One run to its end; how many text deltas came."""
        body: dict[str, Any] = {
            "threadId": thread or uuid4().hex,
            "runId": uuid4().hex,
            "messages": [{"id": uuid4().hex, "role": "user", "content": text}],
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
        }
        answer = await self.client.post("/agents/assistant/run", json=body)
        assert answer.status_code == 200, answer.text
        assert "RUN_FINISHED" in answer.text
        return answer.text.count('"TEXT_MESSAGE_CONTENT"')


@asynccontextmanager
async def ours(folder: Path, **settings: str) -> AsyncGenerator[Measured]:
    """`python -m app` with the demo model without delays, everything stored in SQLite in the folder."""
    port = str(free_port())
    agents = "tests.benchmarks.servers.agents:assistant"
    given = {"PORT": port, "DATA_DIR": str(folder), "AGENTS": agents, "LOG_LEVEL": "warning", **settings}
    async with _serving([sys.executable, "-m", "app"], port, environment(given)) as server:
        yield server


@asynccontextmanager
async def peer() -> AsyncGenerator[Measured]:
    """The peer with a fake model that says as many deltas."""
    port = str(free_port())
    async with _serving([peer_python(), str(SERVERS / "peer.py"), port], port, dict(os.environ)) as server:
        yield server


@asynccontextmanager
async def _serving(command: list[str], port: str, environ: dict[str, str]) -> AsyncGenerator[Measured]:
    process = subprocess.Popen(  # noqa: ASYNC220 - before anything is measured
        command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL
    )
    try:
        handle = psutil.Process(process.pid)
        handle.cpu_affinity([0])
        base_url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base_url, timeout=120, trust_env=False) as client:
            await _answering(client, process)
            yield Measured(base_url, handle, client)
    finally:
        process.kill()
        process.wait()


async def _answering(client: httpx.AsyncClient, process: "subprocess.Popen[bytes]") -> None:
    async with asyncio.timeout(60):
        while True:
            assert process.poll() is None, "the server ended at its start"
            try:
                await client.get("/openapi.json")
            except httpx.TransportError:
                await asyncio.sleep(0.05)
            else:
                return


def median(values: Sequence[float]) -> float:
    """The middle of the sorted values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
