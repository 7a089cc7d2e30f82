"""A PostgreSQL database: one short transaction a unit, held by one process."""

import asyncio
import logging
from typing import Any, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.errors import OutcomeUnknown, StartupRefused, StorageFailed
from app.store.database import Unit, closed, drivers_errors_wrapped

logger = logging.getLogger(__name__)
T = TypeVar("T")
_LOCK = 0x7665726261  # a number of ours, the same in every version
_AGAIN = {"40001", "40P01"}  # serialization failure, deadlock
_ATTEMPTS = 4


class PostgresLock:
    """The ownership of a database: an advisory lock on a connection that does nothing else.

    The server drops it with the connection, so a killed owner leaves none behind.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None
        self._turn = asyncio.Lock()

    async def take(self) -> str | None:
        """Takes the lock. None when that worked, else who has it. A moment is left to an owner that was
        killed just now, whose connection the server has yet to notice."""
        connection = await self._engine.connect()
        try:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            for _ in range(10):
                if await connection.scalar(_TRY, {"key": _LOCK}):
                    self._connection, connection = connection, None
                    return None
                await asyncio.sleep(0.1)
            return await connection.scalar(_OWNER, {"key": _LOCK}) or "another process"
        finally:
            if connection is not None:
                await connection.close()

    async def ensure(self) -> None:
        """Takes the lock again after its connection was lost. StorageFailed if somebody else has it."""
        if await self._is_held():
            return
        async with self._turn:
            if await self._is_held():
                return
            await self.release()
            owner = await self.take()
            if owner is not None:
                logger.error("the database was taken over by %s", owner)
                raise StorageFailed("The database was taken over by another server.")

    async def _is_held(self) -> bool:
        if self._connection is None:
            return False
        raw: Any = await self._connection.get_raw_connection()
        return not raw.driver_connection.is_closed()

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.invalidate()
            await connection.close()


_TRY = text("SELECT pg_try_advisory_lock(:key)")
_OWNER = text(
    "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
    "WHERE l.locktype = 'advisory' AND l.granted AND l.database = a.datid "
    "AND (l.classid::bigint << 32 | l.objid::bigint) = :key LIMIT 1"
)


class PostgresDatabase:
    """Units on a pool of connections. Those that a deadlock ended are run again."""

    def __init__(self, engine: AsyncEngine, lock: PostgresLock) -> None:
        self._engine = engine
        self._lock = lock
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closing = False

    async def read(self, unit: Unit[T]) -> T:
        if self._closing:
            raise closed()
        return await self._finish(self._read(unit))

    async def write(self, unit: Unit[T]) -> T:
        if self._closing:
            raise closed()
        return await self._finish(self._write(unit))

    async def close(self) -> None:
        self._closing = True
        if self._under_way:
            await asyncio.wait(self._under_way)
        await self._lock.release()
        await self._engine.dispose()

    async def _finish(self, work: Any) -> Any:
        """A unit is never cut in the middle: a cancelled caller leaves it to end by itself."""
        task: asyncio.Task[Any] = asyncio.create_task(work, name="store unit")
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have gone

    async def _read(self, unit: Unit[T]) -> T:
        with drivers_errors_wrapped():
            async with self._engine.connect() as connection:
                await connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
                return await connection.run_sync(unit)

    async def _write(self, unit: Unit[T]) -> T:
        with drivers_errors_wrapped():
            await self._lock.ensure()
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    return await self._commit(unit)
                except DBAPIError as error:
                    if attempt == _ATTEMPTS or not _was_rolled_back(error):
                        raise
            raise AssertionError("the last attempt returns or raises")

    async def _commit(self, unit: Unit[T]) -> T:
        """One transaction. OutcomeUnknown if it breaks off after COMMIT was sent."""
        results: list[T] = []
        try:
            async with self._engine.begin() as connection:
                results.append(await connection.run_sync(unit))
        except Exception as error:
            if results and not _was_rolled_back(error):
                raise OutcomeUnknown(results[0]) from error
            raise
        return results[0]


def _was_rolled_back(error: Exception) -> bool:
    """Whether the server undid the transaction for the sake of another, so that it may be run again."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _AGAIN


async def own(engine: AsyncEngine) -> PostgresLock:
    """The lock of the database. StartupRefused, naming the owner, if another process has it."""
    lock = PostgresLock(engine)
    owner = await lock.take()
    if owner is not None:
        raise StartupRefused(
            f"The PostgreSQL database is in use by {owner}. Until replicas can share one, it has one owner: "
            "stop that process first, or name another database in VERBATIM_DATABASE_URL."
        )
    return lock


async def reach(engine: AsyncEngine) -> None:
    """StartupRefused, without a word of the URL, if the database cannot be reached."""
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_ping)
    except (SQLAlchemyError, OSError, ValueError) as error:
        raise StartupRefused(
            f"The PostgreSQL database of VERBATIM_DATABASE_URL cannot be reached ({type(error).__name__}). "
            "Check that it runs and that host, user, password and database name are right."
        ) from error


def _ping(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))
