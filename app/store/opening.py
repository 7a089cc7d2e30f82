"""Opens the store that a URL names, with its schema at the newest revision."""

import asyncio
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.errors import StartupRefused, StorageFailed
from app.store import engine, postgres, schema
from app.store.address import File, Memory, Postgres, read_address
from app.store.database import Database, Unit
from app.store.ownership import FileLock
from app.store.sql import SqlStore
from app.store.sqlite import FileDatabase, MemoryDatabase

T = TypeVar("T")


async def open_store(database_url: str | None, data_dir: Path) -> SqlStore:
    """The store of `database_url`, or of the file `verbatim.db` in `data_dir` where that is empty.

    SQLite is brought to the newest revision here; PostgreSQL must be there already. Whoever opens a store
    closes it. StartupRefused if the database is another process's, out of date or out of reach.
    """
    address = read_address(database_url, data_dir)
    if isinstance(address, Postgres):
        return SqlStore(await _open_postgres(address))
    database = MemoryDatabase() if isinstance(address, Memory) else _open_file(address)
    await _upgrade(database)
    return SqlStore(database)


async def migrate(database_url: str | None, data_dir: Path) -> str:
    """Brings the database to the newest revision, and returns that. StartupRefused as in `open_store`."""
    address = read_address(database_url, data_dir)
    if isinstance(address, Postgres):
        return await _migrate_postgres(address)
    database = MemoryDatabase() if isinstance(address, Memory) else _open_file(address)
    revision = await _upgrade(database)
    await database.close()
    return revision


def _open_file(address: File) -> FileDatabase:
    try:
        address.path.parent.mkdir(parents=True, exist_ok=True)
        path = address.path.resolve()  # one lock, by whatever links the file is reached
        lock = FileLock(path)
    except OSError as error:
        raise StartupRefused(
            f"{address.path} cannot be opened ({error.strerror}). "
            "VERBATIM_DATA_DIR must name a directory that this user may write to."
        ) from error
    return FileDatabase(path, lock)


async def _upgrade(database: Database) -> str:
    try:
        return await database.write(schema.upgrade)
    except BaseException as error:
        await database.close()
        if isinstance(error, StorageFailed) and isinstance(error.__cause__, DatabaseError):
            raise StartupRefused(
                f"The SQLite database cannot be used ({error.__cause__.orig}). "
                "Close other programs that use the file, put a copy from a backup in its place, "
                "or set VERBATIM_DATA_DIR to another directory."
            ) from error
        raise


async def _open_postgres(address: Postgres) -> Database:
    pool = engine.postgres(address.dsn)
    try:
        await postgres.reach(pool)
        await _in_transaction(pool, schema.require_newest)
        return postgres.PostgresDatabase(pool, await postgres.own(pool))
    except BaseException:
        await pool.dispose()
        raise


async def _migrate_postgres(address: Postgres) -> str:
    """Holds the lock meanwhile: no server may run on a schema that changes under it."""
    pool = engine.postgres(address.dsn)
    try:
        await postgres.reach(pool)
        lock = await postgres.own(pool)
        try:
            return await _in_transaction(pool, schema.upgrade)
        finally:
            await lock.release()
    finally:
        await asyncio.shield(pool.dispose())


async def _in_transaction(pool: AsyncEngine, unit: Unit[T]) -> T:
    async with pool.begin() as connection:
        return await connection.run_sync(unit)
