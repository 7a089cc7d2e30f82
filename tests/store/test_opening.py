"""Which database a URL opens, and when the server must not start."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import StartupRefused
from app.store import schema
from app.store.opening import migrate, open_store
from tests.contracts.turns import NS, turn
from tests.services.postgres import PostgresServer


@pytest.mark.requirement("HIS-02")
async def test_without_a_url_the_file_lies_in_the_data_directory(tmp_path: Path):
    for url in (None, ""):
        store = await open_store(url, tmp_path / "new" / "data")
        await store.close()
    assert (tmp_path / "new" / "data" / "verbatim.db").exists()


@pytest.mark.requirement("HIS-02")
async def test_a_database_in_memory_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    store = await open_store("sqlite://", tmp_path / "data")
    await turn(store, "r1")
    await store.close()
    store = await open_store("sqlite://", tmp_path / "data")
    assert await store.get_thread(NS, "t") is None
    await store.close()
    assert os.listdir(tmp_path) == []


async def test_a_relative_path_is_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    store = await open_store("sqlite:///here/my%20store%3F%2541.db", tmp_path / "data")
    await store.close()
    assert (tmp_path / "here" / "my store?%41.db").exists()


@pytest.mark.parametrize("url", ["mysql://root:secret@host/db", "sqlite:store.db", "sqlite://store.db", "x"])
async def test_other_urls_are_refused_without_repeating_a_password(url: str, tmp_path: Path):
    with pytest.raises(StartupRefused, match="DATABASE_URL") as refused:
        await open_store(url, tmp_path)
    assert "secret" not in refused.value.public


async def test_all_spellings_of_a_postgresql_url_open_it(postgres_url: str, tmp_path: Path):
    rest = postgres_url.removeprefix("postgresql://")
    for scheme in ("postgresql", "postgres", "postgresql+asyncpg"):
        store = await open_store(f"{scheme}://{rest}", tmp_path)
        await store.close()


async def test_an_unreachable_postgresql_is_refused_without_its_password(tmp_path: Path):
    with pytest.raises(StartupRefused, match="cannot be reached") as refused:
        await open_store(f"postgresql://user:secret@/db?host={tmp_path}", tmp_path)
    assert "secret" not in refused.value.public


@pytest.mark.requirement("HIS-18")
async def test_a_postgresql_that_is_not_migrated_is_refused_with_the_command(
    empty_postgres_url: str, tmp_path: Path
):
    with pytest.raises(StartupRefused, match="python -m app migrate"):
        await open_store(empty_postgres_url, tmp_path)
    assert await migrate(empty_postgres_url, tmp_path) == schema.newest_revision()
    store = await open_store(empty_postgres_url, tmp_path)
    await turn(store, "r1")
    await store.close()


@pytest.mark.requirement("HIS-18")
async def test_a_database_of_a_newer_version_is_refused(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
):
    newer = "UPDATE alembic_version SET version_num = '9999'"
    await (await open_store("", tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "verbatim.db")) as connection, connection:
        connection.execute(newer)
    postgres_server.execute(newer, url=postgres_url)
    for url in ("", postgres_url):
        with pytest.raises(StartupRefused, match=r"9999.*newer version"):
            await open_store(url, tmp_path)
        with pytest.raises(StartupRefused, match="9999"):
            await migrate(url, tmp_path)


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "verbatim.db"
    path.write_text("not a database, but somebody's words" * 100)
    with pytest.raises(StartupRefused, match="not a database"):
        await open_store("", tmp_path)
    assert path.read_text().startswith("not a database")


async def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupRefused, match="DATA_DIR"):
        await open_store("", tmp_path / "file" / "data")
