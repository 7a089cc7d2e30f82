"""One process has the database; a killed one leaves it free."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.errors import StartupRefused
from app.store.opening import migrate, open_store
from tests.contracts.turns import NS, turn


@asynccontextmanager
async def another_process(database_url: str, data_dir: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A process that owns the database and is killed in the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.store.owner",
        database_url,
        str(data_dir),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 30) == b"owned\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.requirement("HIS-03")
async def test_a_second_owner_is_refused_with_the_pid_of_the_first_and_the_way_out(tmp_path: Path):
    async with another_process("", tmp_path) as owner:
        with pytest.raises(StartupRefused, match=f"process {owner.pid}.*DATA_DIR"):
            await open_store("", tmp_path)
        with pytest.raises(StartupRefused, match=f"process {owner.pid}"):
            await migrate("", tmp_path)
        assert owner.returncode is None


@pytest.mark.requirement("HIS-03")
async def test_a_killed_owners_directory_opens_at_once(tmp_path: Path):
    async with another_process("", tmp_path) as owner:
        owner.kill()
        await owner.communicate()
        store = await open_store("", tmp_path)
        assert [run.id for run in await store.runs(NS, "t")] == ["r1", "r2"]
        assert [(ns, run.id) for ns, run in await store.live_runs()] == [(NS, "r2")]
        await store.close()


@pytest.mark.requirement("HIS-03")
async def test_the_same_process_is_refused_too_and_let_in_after_close(tmp_path: Path):
    store = await open_store("", tmp_path)
    with pytest.raises(StartupRefused, match=f"process {os.getpid()}"):
        await open_store(f"sqlite:///{tmp_path / 'verbatim.db'}", tmp_path)
    await turn(store, "r1")
    await store.close()
    store = await open_store("", tmp_path)
    await store.close()


async def test_a_second_process_on_postgresql_is_refused_by_name(postgres_url: str, tmp_path: Path):
    async with another_process(postgres_url, tmp_path) as owner:
        with pytest.raises(StartupRefused, match=f"verbatim {owner.pid} on .*DATABASE_URL"):
            await open_store(postgres_url, tmp_path)
        with pytest.raises(StartupRefused, match=f"verbatim {owner.pid} on "):
            await migrate(postgres_url, tmp_path)


async def test_a_killed_owners_postgresql_opens_at_once(postgres_url: str, tmp_path: Path):
    async with another_process(postgres_url, tmp_path) as owner:
        owner.kill()
        await owner.communicate()
        store = await open_store(postgres_url, tmp_path)
        assert [run.id for _, run in await store.live_runs()] == ["r2"]
        await store.close()
