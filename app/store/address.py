"""Where a database is: what `DATABASE_URL` says."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from app.errors import StartupRefused

FILE_NAME = "verbatim.db"
_POSTGRES = ("postgresql", "postgres", "postgresql+asyncpg")


@dataclass(frozen=True, slots=True)
class Memory:
    """A database in memory, gone with its process."""


@dataclass(frozen=True, slots=True)
class File:
    """A SQLite file."""

    path: Path


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL database, by a URL as libpq reads it. It may hold a password: never show it."""

    dsn: str


Address = Memory | File | Postgres


def read_address(database_url: str | None, data_dir: Path) -> Address:
    """The address a URL names; an empty one is the file `verbatim.db` in `data_dir`.

    StartupRefused for anything but `sqlite://` (in memory), `sqlite:///path` and `postgresql://…`.
    """
    if not database_url:
        return File(data_dir / FILE_NAME)
    scheme, separator, rest = database_url.partition("://")
    if separator and scheme in _POSTGRES:
        return Postgres(f"postgresql://{rest}")
    if separator and scheme == "sqlite":
        return _sqlite(rest)
    raise StartupRefused(
        f"VERBATIM_DATABASE_URL has the scheme {scheme.partition(':')[0]!r}. Use sqlite:// (in memory), "
        "sqlite:///path/to/file.db or postgresql://user:password@host/database, or leave it empty."
    )


def _sqlite(rest: str) -> Memory | File:
    if rest in ("", "/:memory:"):
        return Memory()
    if not rest.startswith("/") or rest == "/":
        raise StartupRefused(
            "VERBATIM_DATABASE_URL names a SQLite file with three slashes: sqlite:///path/to/file.db"
        )
    return File(Path(unquote(rest[1:])))
