"""What the store asks of a database: units of work, each all or nothing."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from asyncpg import DataError, InterfaceError, PostgresError
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.errors import InvalidInput, StorageFailed, StoreClosed

T = TypeVar("T")
PARSED_INLINE = 200
"""Rows, about two milliseconds of parsing."""
Unit = Callable[[Connection], T]
"""Work on one connection, within one transaction. It may be run again if it was rolled back, and has no
effect beside the database's."""


class Database(Protocol):
    """Runs units. Errors of drivers come out as StorageFailed, any other exception of a unit as it is."""

    async def read(self, unit: Unit[T]) -> T:
        """A unit that writes nothing and sees one moment of the database."""
        ...

    async def write(self, unit: Unit[T]) -> T:
        """A unit that is committed when this returns, and has changed nothing if it raises; but whether it
        was committed is not known if it raises OutcomeUnknown.

        A caller that is cancelled meanwhile does not learn whether the unit was committed; it is never cut.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Unread(Generic[T]):
    """Rows that were fetched, and what makes records of them. `size` is in short rows."""

    size: int
    parse: Callable[[], T]


class SqlPart:
    """A part of the store: methods over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _read_parsed(self, unit: Unit[Unread[T]]) -> T:
        """Parses what a unit fetched after the unit, so that no connection waits for it, and the bodies of
        a long history in a thread, so that no follower does."""
        unread = await self._database.read(unit)
        if unread.size <= PARSED_INLINE:
            return unread.parse()
        return await asyncio.to_thread(unread.parse)


@contextmanager
def drivers_errors_wrapped() -> Generator[None]:
    """Turns what a driver raises into StorageFailed; the cause stays attached for the log.

    InvalidInput for text that the database cannot hold: a lone surrogate, and NUL in PostgreSQL.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise unstorable() from error
    except (SQLAlchemyError, PostgresError, InterfaceError, OSError) as error:
        if _is_about_text(error):
            raise unstorable() from error
        raise not_stored() from error


def not_stored() -> StorageFailed:
    """The error for a unit that was rolled back."""
    return StorageFailed("The database could not do this. Nothing of it was stored.")


def _is_about_text(error: Exception) -> bool:
    """Whether asyncpg, which SQLAlchemy wraps twice, could not send a value or the server not take it."""
    return isinstance(error, DBAPIError) and isinstance(getattr(error.orig, "__cause__", None), DataError)


def unstorable() -> InvalidInput:
    """The error for text that no database can hold."""
    return InvalidInput("The text holds a character that cannot be stored.")


def closed() -> StoreClosed:
    """The error for any use after the end."""
    return StoreClosed("The store is closed.")
