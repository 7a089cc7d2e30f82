"""What the databases refuse by themselves, whoever asks."""

import sqlite3
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from app.conversation.messages import user_message
from app.errors import AppError
from app.store.opening import open_store
from tests.contracts.turns import NS, claim_of, turn
from tests.services.postgres import PostgresServer

Execute = Callable[[str], None]
REFUSALS = (sqlite3.IntegrityError, asyncpg.PostgresError)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Execute]:
    """A database's URL, and a way to it beside the store."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        server: PostgresServer = request.getfixturevalue("postgres_server")
        return url, lambda statement: server.execute(statement, url=url)
    path = tmp_path / "store.db"

    def execute(statement: str) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return f"sqlite:///{path}", execute


@pytest.mark.requirement("HIS-10")
async def test_a_stored_entry_cannot_be_rewritten(database: tuple[str, Execute], tmp_path: Path):
    url, execute = database
    store = await open_store(url, tmp_path)
    await turn(store, "r1")
    before = await store.run_entries(NS, "r1")
    for change in ("body = '{}'", "shown = NOT shown", "seq = seq + 1000", "wire = '[]'"):
        with pytest.raises(REFUSALS, match="never rewritten"):
            execute(f"UPDATE entries SET {change}")
    assert await store.run_entries(NS, "r1") == before
    await store.close()


@pytest.mark.requirement("HIS-13")
async def test_the_database_itself_lets_one_run_of_a_thread_run(
    database: tuple[str, Execute], tmp_path: Path
):
    url, execute = database
    store = await open_store(url, tmp_path)
    await store.claim(claim_of("r1"))
    columns = "namespace, id, thread_id, agent, status, created_at"
    insert = f"INSERT INTO runs ({columns}) VALUES ('{NS}', '%s', 't', 'a', '%s', '')"
    with pytest.raises(REFUSALS, match=r"(?i)unique"):
        execute(insert % ("r2", "running"))
    with pytest.raises(REFUSALS, match=r"(?i)unique"):
        execute(insert % ("r1", "completed"))
    execute(insert % ("r2", "completed"))
    await store.close()


@pytest.mark.requirement("SEC-05")
async def test_what_was_said_is_in_no_error_of_a_database_that_refuses_it(
    database: tuple[str, Execute], tmp_path: Path
):
    url, execute = database
    store = await open_store(url, tmp_path)
    said = user_message("my password is hunter2", sender_id="hunter2", id="m1")
    claim = claim_of("r1", said, state={"secret": "hunter2"})
    if url.startswith("sqlite"):
        breakages = ["CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END"]
    else:
        breakages = ["ALTER TABLE entries ADD CHECK (kind <> 'message')"]
    for breakage in (*breakages, "ALTER TABLE entries RENAME TO lost"):
        execute(breakage)
        with pytest.raises(AppError) as failed:
            await store.claim(claim)
        assert failed.value.__cause__ is not None
        assert "hunter2" not in "".join(traceback.format_exception(failed.value))
    await store.close()
