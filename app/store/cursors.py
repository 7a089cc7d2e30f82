"""Where a listing or a page goes on. A cursor is opaque to clients and is checked when it comes back."""

import base64
import hashlib
import json
import re

from app.errors import InvalidInput
from app.store.adapter import MOST_PER_PAGE, ThreadQuery

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_SEQ = re.compile(r"[1-9]\d{0,17}", re.ASCII)


def check_limit(limit: int) -> None:
    """InvalidInput unless the limit is between 1 and MOST_PER_PAGE."""
    if not 1 <= limit <= MOST_PER_PAGE:
        raise InvalidInput(f"limit must be between 1 and {MOST_PER_PAGE}.", field="limit")


def write_thread_cursor(namespace: str, query: ThreadQuery, updated_at: str, thread_id: str) -> str:
    """The place behind a thread in the listing that `query` describes."""
    content = json.dumps([_digest(namespace, query), updated_at, thread_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_thread_cursor(namespace: str, query: ThreadQuery, cursor: str) -> tuple[str, str]:
    """(updated_at, thread id) of the place. InvalidInput for a cursor that this listing did not make."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        content: object = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise _refused("cursor") from None
    match content:
        case [str() as digest, str() as updated_at, str() as thread_id]:
            if digest == _digest(namespace, query) and _TIME.fullmatch(updated_at):
                return updated_at, thread_id
        case _:
            pass
    raise _refused("cursor")


def _digest(namespace: str, query: ThreadQuery) -> str:
    """Names a listing by all that decides which threads are in it."""
    filters = [
        namespace,
        query.include_hidden,
        query.group_id,
        query.parent_thread_id,
        query.agent,
        query.archived,
    ]
    return hashlib.sha256(json.dumps(filters).encode()).hexdigest()[:16]


def read_entry_cursor(cursor: str) -> int:
    """The sequence number of an entry. InvalidInput (field `before`) for anything but a number."""
    if not _SEQ.fullmatch(cursor):
        raise refused_before()
    return int(cursor)


def refused_before() -> InvalidInput:
    """The error for a place among messages that is not of this thread."""
    return _refused("before")


def _refused(field: str) -> InvalidInput:
    return InvalidInput(f"{field} is not a value that an earlier page of this listing gave.", field=field)
