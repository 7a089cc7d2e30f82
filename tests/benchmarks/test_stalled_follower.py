"""A follower that stops reading while 40,000 deltas pass: the run is not slowed, memory hardly grows."""

import asyncio
import os
import socket
from datetime import datetime
from pathlib import Path

import pytest

from tests.benchmarks.running import Measured, median, ours
from tests.services.waiting import eventually

DELTAS = 40_000
ROUNDS = 9
MEGABYTE = 1024 * 1024


async def _start(server: Measured, run: str) -> None:
    body = {"text": f"long {DELTAS}", "runId": run}
    assert (await server.client.post(f"/threads/{run}/runs", json=body)).status_code == 202


async def _ended(server: Measured, run: str) -> None:
    async def settled() -> bool:
        return (await server.client.get(f"/threads/{run}/runs/{run}")).json()["status"] != "running"

    await eventually(settled)


async def _duration(server: Measured, run: str) -> float:
    """Seconds of a run by its own record."""
    record = (await server.client.get(f"/threads/{run}/runs/{run}")).json()
    begun, ended = (datetime.fromisoformat(record[name]) for name in ("createdAt", "endedAt"))
    return (ended - begun).total_seconds()


async def _stall(server: Measured, run: str) -> asyncio.StreamWriter:
    """A follower that asks for the events and reads none; the system buffers next to nothing for it."""
    host, _, port = server.base_url.removeprefix("http://").partition(":")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.setblocking(False)
    await asyncio.get_running_loop().sock_connect(deaf, (host, int(port)))
    _, writer = await asyncio.open_connection(sock=deaf, limit=1)
    writer.write(f"GET /threads/{run}/runs/{run}/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    await writer.drain()
    return writer


async def _measure(folder: Path, stalled: bool) -> tuple[float, float]:
    """Seconds and megabytes of growth of a run in a fresh server, with a stalled follower or without."""
    async with ours(folder) as server:
        await _start(server, "warm")
        await _ended(server, "warm")
        before = server.resident_bytes()
        await _start(server, "measured")
        writer = await _stall(server, "measured") if stalled else None
        await _ended(server, "measured")
        seconds = await _duration(server, "measured")
        grown = (server.resident_bytes() - before) / MEGABYTE
        if writer is not None:
            writer.close()
        return seconds, grown


@pytest.mark.benchmark
@pytest.mark.timeout(600)
async def test_a_follower_that_stops_reading_costs_next_to_nothing(tmp_path: Path) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pairs = [
        (await _measure(tmp_path / f"a{n}", False), await _measure(tmp_path / f"b{n}", True))
        for n in range(ROUNDS)
    ]
    slower = median([stalled[0] / alone[0] for alone, stalled in pairs])
    more = median([stalled[1] - alone[1] for alone, stalled in pairs])
    print(
        f"\n{DELTAS} deltas: {median([alone[0] for alone, _ in pairs]):.2f} s alone, time ratio with a "
        f"stalled follower {slower:.2f}; {median([alone[1] for alone, _ in pairs]):.1f} MB for the run and "
        f"its log, {more:+.2f} MB with the follower"
    )
    assert slower <= 1.25  # until the system buffers for it are full, it costs what any follower does
    assert more < 2
