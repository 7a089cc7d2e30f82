"""A SQLite database: one writer, and readers that do not wait for it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine

from app.store.database import Unit, closed, drivers_errors_wrapped
from app.store.engine import READERS, sqlite_readers, sqlite_writer
from app.store.ownership import FileLock
from app.store.writer import Writer

T = TypeVar("T")


class MemoryDatabase:
    """A database in memory: it has one connection, so reading waits its turn among the writing."""

    def __init__(self) -> None:
        self._writer = Writer(sqlite_writer(None))

    async def read(self, unit: Unit[T]) -> T:
        return await self._writer.run(unit)

    async def write(self, unit: Unit[T]) -> T:
        return await self._writer.run(unit)

    async def close(self) -> None:
        await self._writer.close()


class FileDatabase:
    """A database in a file that this process owns until `close`."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self._lock = lock
        self._writer = Writer(sqlite_writer(path))
        self._engine = sqlite_readers(path)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._closing = False

    async def read(self, unit: Unit[T]) -> T:
        if self._closing:
            raise closed()
        return await asyncio.get_running_loop().run_in_executor(self._readers, _read, self._engine, unit)

    async def write(self, unit: Unit[T]) -> T:
        return await self._writer.run(unit)

    async def close(self) -> None:
        """The readers go first: the last connection to close folds the log into the file, and readers
        cannot."""
        self._closing = True
        await asyncio.to_thread(self._readers.shutdown)
        self._engine.dispose()
        await self._writer.close()
        self._lock.release()


def _read(engine: Engine, unit: Unit[T]) -> T:
    with drivers_errors_wrapped(), engine.connect() as connection:
        return unit(connection)
