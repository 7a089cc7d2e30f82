"""An application's records, as they may be stored and told."""

import orjson
from pydantic import JsonValue

from app.agent.scrub import plain_json, scrub

LONGEST_NAME = 200
LARGEST_RECORD = 1024 * 1024
"""Bytes of a value as JSON: every client of the thread is sent all of it."""


def checked_record(name: str, value: object) -> tuple[str, JsonValue]:
    """Name and value of a record as every store and wire can carry them, copied. ValueError for a name that
    is not of 1 to 200 characters, and for a value that has no JSON form or one of more than a mebibyte."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"the name of a record has 1 to {LONGEST_NAME} characters")
    plain = plain_json(value)
    if len(orjson.dumps(plain)) > LARGEST_RECORD:
        raise ValueError(f"the value of a record has at most {LARGEST_RECORD} bytes")
    return scrub(name), plain
