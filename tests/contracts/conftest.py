"""The databases that every contract of storage is held on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.store.opening import open_store
from app.store.sql import SqlStore

BACK_ENDS = ("sqlite-file", "sqlite-memory", "postgresql")


@pytest.fixture(params=BACK_ENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each kind."""
    match request.param:
        case "sqlite-file":
            return f"sqlite:///{tmp_path / 'store.db'}"
        case "sqlite-memory":
            return "sqlite://"
        case _:
            return request.getfixturevalue("postgres_url")


@pytest.fixture
async def store(database_url: str, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A store on each kind of database."""
    opened = await open_store(database_url, tmp_path)
    yield opened
    await opened.close()
