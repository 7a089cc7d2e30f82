"""A page costs the same on a thread of ten turns and on one of ten thousand."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import pytest

from app.store import engine
from app.store.opening import migrate
from app.store.sql import SqlStore
from tests.benchmarks.running import median
from tests.contracts.turns import NS
from tests.store.long_thread import write_thread
from tests.store.meters import MeteredSqlite, Work

ROUNDS = 60
SHORT, LONG = 20, 10_000


@pytest.mark.benchmark
@pytest.mark.timeout(300)
async def test_a_page_of_twenty_turns_costs_the_same_however_long_the_thread(tmp_path: Path) -> None:
    await migrate("", tmp_path)
    metered = MeteredSqlite(engine.sqlite_writer(tmp_path / "verbatim.db"))
    for turns in (10, SHORT, LONG):
        await metered.write(partial(write_thread, thread_id=f"of{turns}", turns=turns))
    store = SqlStore(metered)

    async def page(thread: str) -> tuple[int, Work, float]:
        metered.work = Work()
        started = perf_counter()
        read = await store.transcript_page(NS, thread, limit=20)
        return len(read.rows), metered.work, perf_counter() - started

    await _compare(page)
    await metered.close()


async def _compare(page: Callable[[str], Awaitable[tuple[int, Work, float]]]) -> None:
    for thread in ("of10", f"of{SHORT}", f"of{LONG}") * 3:
        await page(thread)
    ratios: list[float] = []
    little = much = Work()
    for _ in range(ROUNDS):
        small, little, quick = await page(f"of{SHORT}")
        large, much, slow = await page(f"of{LONG}")
        assert small == large == 20
        assert len(little.statements) == len(much.statements)
        assert much.steps <= little.steps * 1.02
        ratios.append(slow / quick)
    ten, least, _ = await page("of10")
    print(
        f"\nA page of 20 turns: {little.steps} steps on {SHORT} turns, {much.steps} on {LONG} "
        f"(of 10 turns: {ten} rows, {least.steps} steps); {len(much.statements)} statements; "
        f"median time ratio {median(ratios):.2f}"
    )
    assert median(ratios) <= 1.5
