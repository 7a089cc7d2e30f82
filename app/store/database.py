"""What the store asks of a database: units of work, each all or nothing."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from asyncpg import InterfaceError, PostgresError
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from app.errors import StorageFailed, StoreClosed

T = TypeVar("T")
Unit = Callable[[Connection], T]
"""Work on one connection, within one transaction. It may be run again if it was rolled back, and has no
effect beside the database's."""


class Database(Protocol):
    """Runs units. Errors of drivers come out as StorageFailed, any other exception of a unit as it is."""

    async def read(self, unit: Unit[T]) -> T:
        """A unit that writes nothing and sees one moment of the database."""
        ...

    async def write(self, unit: Unit[T]) -> T:
        """A unit that is committed when this returns, and has changed nothing if it raises.

        A caller that is cancelled meanwhile does not learn whether the unit was committed; it is never cut.
        """
        ...

    async def close(self) -> None: ...


class SqlPart:
    """A part of the store: methods over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database


@contextmanager
def drivers_errors_wrapped() -> Generator[None]:
    """Turns what a driver raises into StorageFailed; the cause stays attached for the log."""
    try:
        yield
    except (SQLAlchemyError, PostgresError, InterfaceError, OSError) as error:
        raise StorageFailed("The database could not do this. Nothing of it was stored.") from error
    except UnicodeEncodeError as error:
        raise StorageFailed("The text holds a character that cannot be stored.") from error


def closed() -> StoreClosed:
    """The error for any use after the end."""
    return StoreClosed("The store is closed.")
