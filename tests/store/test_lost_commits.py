"""Commits on PostgreSQL that break off: whether they were stored is not known until it is looked up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.errors import RunExists, StorageFailed
from app.store import claims
from app.store.opening import open_store
from app.store.sql import SqlStore
from tests.contracts.turns import NS, answered, asked, attributes, claim_of, ids, new
from tests.services.postgres import PostgresServer
from tests.store.severing import SeveringLine, severing_line


@pytest.fixture
async def line(postgres_url: str) -> AsyncIterator[SeveringLine]:
    """A line to an empty database."""
    async with severing_line(postgres_url) as opened:
        yield opened


@pytest.fixture
async def store(line: SeveringLine, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A store at the end of the line."""
    opened = await open_store(line.url, tmp_path)
    yield opened
    await opened.close()


@pytest.mark.parametrize("thread_exists", [True, False])
@pytest.mark.parametrize("lost", ["answer", "commit"])
async def test_a_claim_whose_commit_broke_off_is_granted_once(
    store: SqlStore, line: SeveringLine, lost: str, thread_exists: bool
):
    if thread_exists:
        await store.create_thread(NS, "t", attributes())
    claim = claim_of("r1", asked("r1"), expected_head=None, state={"a": [1.5]}, input={"tools": []})
    if lost == "answer":
        line.lose_the_answer()
    else:
        line.lose_the_commit()
    run = await store.claim(claim)
    assert await store.live_runs() == [(NS, run)]
    assert ids([row.entry for row in await store.run_entries(NS, "r1")]) == ["r1-q"]
    with pytest.raises(RunExists):
        await store.claim(claim)


async def test_a_run_of_somebody_else_is_not_taken_for_the_lost_one(
    store: SqlStore, line: SeveringLine, postgres_server: PostgresServer, postgres_url: str
):
    await store.create_thread(NS, "t", attributes())
    columns = "namespace, id, thread_id, agent, status, created_at"
    row = f"'{NS}', 'r1', 't', 'assistant', 'running', '2026-03-01T12:00:00.000Z'"
    insert = f"INSERT INTO runs ({columns}) VALUES ({row})"
    line.lose_the_commit(lambda: asyncio.to_thread(postgres_server.execute, insert, url=postgres_url))
    with pytest.raises(RunExists):
        await store.claim(claim_of("r1", asked("r1")))
    assert await store.run_entries(NS, "r1") == []


async def test_while_the_database_stays_away_nobody_says_that_nothing_was_stored(
    store: SqlStore, line: SeveringLine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(claims, "_SETTLE_DELAYS", (0, 0))
    line.lose_the_answer(stays_down=True)
    with pytest.raises(StorageFailed, match="may or may not have been stored"):
        await store.claim(claim_of("r1", asked("r1")))
    line.repair()
    assert [run.id for _, run in await store.live_runs()] == ["r1"]


async def test_an_append_whose_answer_was_lost_says_that_it_may_have_been_stored(
    store: SqlStore, line: SeveringLine
):
    await store.claim(claim_of("r1", asked("r1")))
    line.lose_the_answer()
    with pytest.raises(StorageFailed, match="may or may not have been stored"):
        await store.append(NS, "r1", new(answered("r1")))
    assert ids([row.entry for row in await store.run_entries(NS, "r1")]) == ["r1-q", "r1-a"]
