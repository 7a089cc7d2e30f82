"""Databases that count the work a read costs, so that tests need no clock."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.store.database import Unit

T = TypeVar("T")


@dataclass
class Work:
    """What reads cost: their statements, and the rows or steps that the database itself counted."""

    statements: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    steps: int = 0

    @contextmanager
    def noting(self, engine: Engine) -> Generator[None]:
        """Notes the statements of an engine."""

        def note(connection: Any, cursor: Any, statement: str, parameters: Any, *rest: object) -> None:
            self.statements.append((statement, parameters))

        event.listen(engine, "before_cursor_execute", note)
        try:
            yield
        finally:
            event.remove(engine, "before_cursor_execute", note)


class MeteredSqlite:
    """Reads on a SQLite engine; a step is one instruction of SQLite's machine."""

    def __init__(self, engine: Engine) -> None:
        self.work = Work()
        self._engine = engine

    async def read(self, unit: Unit[T]) -> T:
        with self._engine.connect() as connection, connection.begin(), self.work.noting(self._engine):
            raw: Any = connection.connection.dbapi_connection
            raw.set_progress_handler(self._step, 1)
            try:
                return unit(connection)
            finally:
                raw.set_progress_handler(None, 0)

    def _step(self) -> int:
        self.work.steps += 1
        return 0

    async def write(self, unit: Unit[T]) -> T:
        with self._engine.begin() as connection, self.work.noting(self._engine):
            return unit(connection)

    async def plan(self, statement: str, parameters: Any, *, small: bool = False) -> str:
        """How SQLite does it, which does not depend on sizes."""
        with self._engine.connect() as connection:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            return "\n".join(row.detail for row in rows)

    async def close(self) -> None:
        self._engine.dispose()


class MeteredPostgres:
    """Reads on a PostgreSQL engine; a step is a row that it took from a table or an index."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.work = Work()
        self._engine = engine

    async def read(self, unit: Unit[T]) -> T:
        async with self._engine.connect() as connection:
            before = await connection.run_sync(_rows_taken)
            with self.work.noting(self._engine.sync_engine):
                result = await connection.run_sync(unit)
            self.work.steps += await connection.run_sync(_rows_taken) - before
            return result

    async def write(self, unit: Unit[T]) -> T:
        async with self._engine.begin() as connection:
            with self.work.noting(self._engine.sync_engine):
                return await connection.run_sync(unit)

    async def plan(self, statement: str, parameters: Any, *, small: bool = False) -> str:
        """How PostgreSQL does it; `small` keeps it from taking a table of a few rows as a whole."""
        async with self._engine.connect() as connection:
            for way in ("seqscan", "bitmapscan") if small else ():
                await connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
            rows = await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
            return "\n".join(row[0] for row in rows)

    async def close(self) -> None:
        await self._engine.dispose()


def _rows_taken(connection: Connection) -> int:
    counted = "sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))"
    return int(connection.execute(text(f"SELECT {counted} FROM pg_stat_xact_user_tables")).scalar_one())
