"""What a model is given costs what it is given, and not what its thread is long."""

from functools import partial
from pathlib import Path
from time import perf_counter

import pytest

from app.conversation.recall import Recall
from app.store import engine
from app.store.opening import migrate
from app.store.sql import SqlStore
from tests.benchmarks.running import median
from tests.contracts.turns import NS
from tests.store.long_thread import write_summarised_thread
from tests.store.meters import MeteredSqlite, Work

ROUNDS = 100
KEPT = 20
SHORT, LONG = KEPT + 1, 2_500
SUMMARISED = Recall(summarised=True)


@pytest.mark.benchmark
@pytest.mark.timeout(300)
async def test_the_past_of_a_summarised_thread_costs_the_same_however_long_it_is(tmp_path: Path) -> None:
    await migrate("", tmp_path)
    metered = MeteredSqlite(engine.sqlite_writer(tmp_path / "verbatim.db"))
    for turns in (SHORT, LONG):
        thread_id = f"of{turns}"
        await metered.write(partial(write_summarised_thread, thread_id=thread_id, turns=turns, kept=KEPT))
    store = SqlStore(metered)

    async def recall(turns: int) -> tuple[int, Work, float]:
        metered.work = Work()
        started = perf_counter()
        given = await store.recall(NS, f"of{turns}-{turns - 1}", SUMMARISED)
        return len(given), metered.work, perf_counter() - started

    for turns in (SHORT, LONG) * 3:
        await recall(turns)
    ratios: list[float] = []
    little = much = Work()
    given = 0
    for _ in range(ROUNDS):
        given, little, quick = await recall(SHORT)
        alike, much, slow = await recall(LONG)
        assert given == alike == 2 * (KEPT - 1) + 1
        ratios.append(slow / quick)
    print(
        f"\n{given} entries before a run: {little.steps} steps on a thread of {2 * SHORT} messages, "
        f"{much.steps} on {2 * LONG}; {len(little.statements)} and {len(much.statements)} statements; "
        f"median time ratio {median(ratios):.2f}"
    )
    assert much.steps <= little.steps * 1.5
    assert median(ratios) <= 1.5
    await metered.close()
