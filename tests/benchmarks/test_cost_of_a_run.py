"""What a run of 200 text deltas costs the server, everything stored, beside the leanest peer measured."""

import os
from pathlib import Path

import pytest

from tests.benchmarks.running import Measured, median, ours, peer

ROUNDS = 12
RUNS = 40
DELTAS = 200


async def cost(server: Measured) -> float:
    """CPU milliseconds of the server for one run."""
    before = server.cpu_seconds()
    for _ in range(RUNS):
        assert await server.run(f"long {DELTAS}") == DELTAS
    return (server.cpu_seconds() - before) / RUNS * 1000


@pytest.mark.benchmark
@pytest.mark.timeout(600)
async def test_a_run_costs_at_most_a_third_of_the_peers(tmp_path: Path) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    async with ours(tmp_path / "data") as us, peer() as them:
        for server in (us, them):
            await cost(server)
        pairs = [(await cost(us), await cost(them)) for _ in range(ROUNDS)]
    ratio = median([mine / theirs for mine, theirs in pairs])
    print(
        f"\nCPU a run of {DELTAS} deltas: ours {median([p[0] for p in pairs]):.2f} ms, "
        f"peer {median([p[1] for p in pairs]):.2f} ms, median ratio {ratio:.3f}"
    )
    assert ratio <= 1 / 3
