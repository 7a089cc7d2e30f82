"""The row of a run, and how it is made."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.exc import IntegrityError

from app.store.tables import runs

_INSERT = insert(runs)


class Collision(Exception):
    """A constraint refused an insert that a look had allowed: somebody else's was committed in between."""


def insert_run(connection: Connection, values: Mapping[str, Any]) -> int:
    """Inserts a run and returns its number. Collision if its id, or its thread, is taken."""
    try:
        result = connection.execute(_INSERT, values)
    except IntegrityError as error:
        raise Collision from error
    key = result.inserted_primary_key
    assert key is not None
    return key[0]
