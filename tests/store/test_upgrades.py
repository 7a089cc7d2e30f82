"""A database written by the first migration opens, with all its words, after every later one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.outcomes import RunStatus
from app.conversation.recall import Recall
from app.store import engine, schema
from app.store.adapter import ThreadQuery
from app.store.opening import migrate, open_store
from app.store.tables import metadata
from tests.contracts.branches import ASKING
from tests.contracts.turns import DONE, NOON, attributes, claim_of

ROWS = Path(__file__).parent / "first_migration.sql"
Unit = Callable[[Connection], Any]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "postgresql":
        return request.getfixturevalue("empty_postgres_url")
    return f"sqlite:///{tmp_path / 'old.db'}"


async def on(url: str, unit: Unit) -> Any:
    """Runs a unit on a database that has no store."""
    if url.startswith("sqlite"):
        sqlite = engine.sqlite_writer(Path(url.removeprefix("sqlite:///")))
        try:
            with sqlite.begin() as connection:
                return unit(connection)
        finally:
            sqlite.dispose()
    postgres = engine.postgres(url)
    try:
        async with postgres.begin() as connection:
            return await connection.run_sync(unit)
    finally:
        await postgres.dispose()


def write_old_rows(connection: Connection) -> None:
    """What a server of the first revision left."""
    assert schema.upgrade(connection, "0001") == "0001"
    for statement in ROWS.read_text().split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)


@pytest.mark.requirement("HIS-18", "HIS-16")
async def test_a_database_of_the_first_migration_opens_after_the_upgrade(url: str, tmp_path: Path):
    await on(url, write_old_rows)
    assert await migrate(url, tmp_path) == schema.newest_revision()
    store = await open_store(url, tmp_path)
    (thread,) = (await store.list_threads("default", ThreadQuery())).threads
    assert (thread.id, thread.title, thread.run_count, thread.message_count) == ("old", "Hello", 2, 3)
    first, second = await store.transcript("default", "old")
    question, answer, record = first.entries
    assert isinstance(question, MessageEntry)
    assert question.message.join_text() == "Hello"
    assert question.message.created_at == 1_700_000_000_123_456_789
    assert isinstance(answer, MessageEntry)
    assert answer.message.created_at is None
    assert record == CustomEntry(name="chart", value=[1], id="e3")
    assert second.status is RunStatus.RUNNING
    page = await store.messages("default", "old", renderer=1)
    assert [row.wire for row in page.rows] == ['[{"id":"e1"}]', None, None, None]
    assert [row.run_id for row in page.rows] == ["old-1", "old-1", "old-1", "old-2"]
    assert [run.id for _, run in await store.live_runs()] == ["old-2"]
    await store.finish("default", "old-2", DONE, NOON)
    run = await store.claim(claim_of("r3", namespace="default", thread_id="old"))
    assert (run.previous_run_id, run.state, run.seq) == ("old-2", {"step": 2}, 3)
    await store.close()


@pytest.mark.requirement("HIS-18", "HIS-05", "HIS-08")
async def test_what_later_revisions_brought_works_on_old_rows(url: str, tmp_path: Path):
    await on(url, write_old_rows)
    await migrate(url, tmp_path)
    store = await open_store(url, tmp_path)
    old = await store.get_run("default", "old", "old-1")
    assert old is not None
    assert (old.branch_after_entry, old.resumed_by, old.result) == (None, None, None)
    await store.finish("default", "old-2", ASKING, NOON)
    await store.fork_thread("default", "old", "fork", attributes(), run_id="old-1")
    taken = {"namespace": "default", "thread_id": "old"}
    await store.claim(claim_of("resumed", resumes=True, **taken))
    assert len(await store.recall("default", "resumed", Recall(summarised=True))) == 4
    await store.finish("default", "resumed", DONE, NOON)
    await store.claim(claim_of("edit", previous_run_id="old-1", branch_after_entry="e1", **taken))
    assert [len(turn.entries) for turn in await store.transcript("default", "old")] == [1, 0]
    await store.finish("default", "edit", DONE, NOON)
    assert await store.delete_thread("default", "old", NOON)
    assert [len(turn.entries) for turn in await store.transcript("default", "fork")] == [3]
    await store.close()


@pytest.mark.requirement("HIS-18")
async def test_the_migrations_end_at_the_tables_of_the_program(url: str, tmp_path: Path):
    await migrate(url, tmp_path)

    def differences(connection: Connection) -> list[Any]:
        return compare_metadata(MigrationContext.configure(connection), metadata)

    def triggers(connection: Connection) -> list[str]:
        catalog = "sqlite_master WHERE type = 'trigger'" if url.startswith("sqlite") else "pg_trigger"
        column = "name" if url.startswith("sqlite") else "tgname"
        return list(connection.execute(text(f"SELECT {column} FROM {catalog}")).scalars())

    assert await on(url, differences) == []
    assert "entries_are_never_rewritten" in await on(url, triggers)
