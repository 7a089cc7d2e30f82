"""Entries as rows, and back."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError
from sqlalchemy import Connection, insert
from sqlalchemy.exc import IntegrityError

from app.conversation import views
from app.conversation.entries import CustomEntry, MessageEntry, StoredEntry
from app.conversation.messages import Message
from app.errors import Conflict
from app.store.adapter import NewEntry
from app.store.database import unstorable
from app.store.tables import entries

MESSAGE, CUSTOM = "message", "custom"
_INSERT = insert(entries)
CONTENT = (
    entries.c.kind,
    entries.c.entry_id,
    entries.c.sender_id,
    entries.c.created_at,
    entries.c.body,
)
"""The columns that `read_entry` needs."""


def kept(new: Iterable[NewEntry]) -> list[NewEntry]:
    """Those that a store keeps, in order."""
    return [entry for entry in new if views.stored_view((entry.entry,))]


def insert_entries(
    connection: Connection, namespace: str, thread_id: str, run_id: str, new: Sequence[NewEntry]
) -> int:
    """Appends entries to a run and returns how many of them a reader sees.

    Conflict if the run holds an entry of the same id.
    """
    place = {"namespace": namespace, "thread_id": thread_id, "run_id": run_id}
    rows = [place | _row(entry) for entry in kept(new)]
    if not rows:
        return 0
    try:
        connection.execute(_INSERT, rows)
    except IntegrityError as error:
        raise Conflict(f"Run {run_id} holds an entry of the same id already.") from error
    return sum(1 for row in rows if row["shown"])


def _row(new: NewEntry) -> dict[str, Any]:
    entry = new.entry
    row = _message(entry.message) if isinstance(entry, MessageEntry) else _custom(entry)
    row["wire"] = new.wire
    row["renderer"] = None if new.wire is None else new.renderer
    return row


def _message(message: Message) -> dict[str, Any]:
    return {
        "entry_id": message.id,
        "kind": MESSAGE,
        "role": message.role.value,
        "injected": message.injected.value,
        "origin": message.origin,
        "sender_id": message.sender_id,
        "created_at": message.created_at,
        "shown": views.reader_sees(message),
        "covers": message.covers if views.stands_for_others(message) else None,
        "body": _json(message),
    }


def _json(message: Message) -> str:
    """The stored spelling. InvalidInput for one with a lone surrogate, which has none."""
    try:
        return message.to_json()
    except PydanticSerializationError as error:
        raise unstorable() from error


def _custom(entry: CustomEntry) -> dict[str, Any]:
    return {
        "entry_id": entry.id,
        "kind": CUSTOM,
        "role": None,
        "injected": None,
        "origin": None,
        "sender_id": entry.sender_id,
        "created_at": entry.created_at,
        "shown": False,
        "covers": None,
        "body": json.dumps({"name": entry.name, "value": entry.value}, separators=(",", ":")),
    }


def size_of(rows: Iterable[Any]) -> int:
    """How much there is to parse in rows with the columns of `CONTENT`: a row is one, a long body more."""
    return sum(1 + len(row.body) // 10_000 for row in rows if row.body is not None)


def read_entry(row: Any) -> StoredEntry:
    """The entry of a row with the columns of `CONTENT`."""
    if row.kind == MESSAGE:
        return MessageEntry(Message.model_validate_json(row.body))
    body = json.loads(row.body)
    return CustomEntry(
        name=body["name"],
        value=body["value"],
        created_at=row.created_at,
        sender_id=row.sender_id,
        id=row.entry_id,
    )
