"""SQLAlchemy engines for the databases, set up as the store needs them.

None of them names a parameter in an error: what people say must not come into a log that way.
"""

import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import asyncpg
from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool, StaticPool

READERS = 4
_BUSY_MILLISECONDS = 5_000


def sqlite_writer(path: Path | None) -> Engine:
    """One connection, for one thread; in memory without a path.

    Left to itself the driver begins no transaction before a SAVEPOINT, and every RELEASE would commit.
    So it is told to begin none, and SQLAlchemy's `begin` event takes the write lock at once, which also
    spares a read that turns into a write the refusal it could not wait out.
    """
    engine = create_engine(_sqlite_url(path), poolclass=StaticPool, hide_parameters=True)
    _prepare(engine, "BEGIN IMMEDIATE", ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"))
    return engine


def sqlite_readers(path: Path) -> Engine:
    """Connections that cannot write; a transaction on one sees one moment of the database."""
    engine = create_engine(
        _sqlite_url(path), poolclass=QueuePool, pool_size=READERS, max_overflow=0, hide_parameters=True
    )
    _prepare(engine, "BEGIN", ("query_only=ON",))
    return engine


def _sqlite_url(path: Path | None) -> URL:
    return URL.create("sqlite", database=None if path is None else str(path))


def _prepare(engine: Engine, begin: str, pragmas: tuple[str, ...]) -> None:
    def on_connect(connection: Any, record: object) -> None:
        connection.isolation_level = None
        for pragma in (f"busy_timeout={_BUSY_MILLISECONDS}", *pragmas):
            connection.execute(f"PRAGMA {pragma}").close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)


def postgres(dsn: str) -> AsyncEngine:
    """A pool of asyncpg connections. The driver reads the URL itself, with all that libpq allows in one.

    Each statement is planned for the tables as they are. A plan that was kept from a time when they were
    small would read all of them, for every step along a branch, until statistics are gathered.
    """
    connect = cast(Callable[..., Awaitable[Any]], cast(Any, asyncpg).connect)
    settings = {
        "application_name": f"verbatim {os.getpid()} on {socket.gethostname()}"[:63],
        "plan_cache_mode": "force_custom_plan",
    }

    async def connection() -> Any:
        return await connect(dsn, server_settings=settings)

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connection,
        pool_size=10,
        max_overflow=10,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "handle_error", _forget_detail)
    return engine


def _forget_detail(context: ExceptionContext) -> None:
    """The server's DETAIL of a refused row quotes the row."""
    refused = context.original_exception.__cause__
    if isinstance(refused, asyncpg.PostgresError):
        cast(Any, refused).detail = None
