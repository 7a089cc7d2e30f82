"""A SQLite database: one writer, and readers that do not wait for it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from sqlalchemy import Connection

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
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._closing = False

    async def read(self, unit: Unit[T]) -> T:
        if self._closing:
            raise closed()
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, unit)

    def _read(self, unit: Unit[T]) -> T:
        """On a connection that is kept: taking one from the engine costs more than a short read."""
        with drivers_errors_wrapped():
            connection = self._connected()
            try:
                with connection.begin():
                    return unit(connection)
            finally:
                self._idle.put(connection)

    def _connected(self) -> Connection:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._engine.connect()

    async def write(self, unit: Unit[T]) -> T:
        return await self._writer.run(unit)

    async def close(self) -> None:
        """The readers go first: the last connection to close folds the log into the file, and readers
        cannot."""
        self._closing = True
        await asyncio.to_thread(self._readers.shutdown)
        while not self._idle.empty():
            self._idle.get().close()
        self._engine.dispose()
        await self._writer.close()
        self._lock.release()
