"""A database that lasts, closed and opened again."""

from pathlib import Path

import pytest

from app.conversation.messages import Injected, user_message
from app.store.adapter import ThreadQuery
from app.store.opening import open_store
from tests.contracts.turns import NOON, NS, asked, claim_of, turn


@pytest.fixture(params=["sqlite-file", "postgresql"])
def lasting_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that outlives the store."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 'dir' / 'store.db'}"


@pytest.mark.requirement("HIS-02", "HIS-04", "MSG-07")
async def test_everything_is_there_after_a_restart(lasting_url: str, tmp_path: Path):
    store = await open_store(lasting_url, tmp_path)
    await turn(store, "r1", title="Title")
    await store.claim(claim_of("r2", asked("r2"), user_message("kept", injected=Injected.META), state=[1]))
    before = (
        await store.transcript(NS, "t"),
        await store.list_threads(NS, ThreadQuery()),
        await store.runs(NS, "t"),
        await store.live_runs(),
        await store.messages(NS, "t", renderer=1, limit=2),
    )
    await store.close()

    store = await open_store(lasting_url, tmp_path)
    after = (
        await store.transcript(NS, "t"),
        await store.list_threads(NS, ThreadQuery()),
        await store.runs(NS, "t"),
        await store.live_runs(),
        await store.messages(NS, "t", renderer=1, limit=2),
    )
    await store.close()
    assert after == before
    assert len(after[3]) == 1


async def test_numbers_are_not_given_out_again_after_a_deletion(lasting_url: str, tmp_path: Path):
    store = await open_store(lasting_url, tmp_path)
    first = await turn(store, "r1")
    last_entry = (await store.run_entries(NS, "r1"))[-1].seq
    await store.delete_thread(NS, "t", NOON)
    await store.close()
    store = await open_store(lasting_url, tmp_path)
    second = await turn(store, "r1")
    assert second.seq > first.seq
    assert (await store.run_entries(NS, "r1"))[0].seq > last_entry
    await store.close()
