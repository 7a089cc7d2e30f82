"""Pages cut in memory from a whole branch, for storage that cannot page itself."""

import base64
import json
from collections.abc import Sequence

from app.conversation import views
from app.conversation.entries import CustomEntry, StoredEntry
from app.store.adapter import MessagePage, TurnRow, WireRow
from app.store.cursors import refused_before


def newest_turns(turns: Sequence[TurnRow], limit: int) -> tuple[Sequence[TurnRow], str | None]:
    """The last `limit` turns, and the run before which the next page ends; None at the start."""
    shown = turns[-limit:]
    return shown, shown[0].run_id if len(turns) > limit else None


def shown_rows(turns: Sequence[TurnRow]) -> list[WireRow]:
    """What a reader may see of a branch, records included. Numbers are places on this branch."""
    rows: list[WireRow] = []
    for turn in turns:
        for entry in turn.entries:
            if _is_readable(entry):
                rows.append(WireRow(len(rows) + 1, turn.run_id, None, entry))
    return rows


def _is_readable(entry: StoredEntry) -> bool:
    return isinstance(entry, CustomEntry) or views.reader_sees(entry.message)


def rows_before(rows: Sequence[WireRow], place: tuple[str, str]) -> Sequence[WireRow]:
    """Those before the entry at a place. InvalidInput (field `before`) if it is not among them."""
    for at, row in enumerate(rows):
        if row.entry is not None and (row.run_id, row.entry.id) == place:
            return rows[:at]
    raise refused_before()


def newest_rows(rows: Sequence[WireRow], limit: int | None) -> MessagePage:
    """The last `limit` rows, or all of them."""
    if limit is None or len(rows) <= limit:
        return MessagePage(rows, None)
    shown = rows[-limit:]
    first = shown[0]
    assert first.entry is not None
    return MessagePage(shown, _write_place(first.run_id, first.entry.id))


def _write_place(run_id: str, entry_id: str) -> str:
    content = json.dumps([run_id, entry_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_place(cursor: str) -> tuple[str, str]:
    """(run id, entry id) of a place among messages. InvalidInput (field `before`) for anything else."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        content: object = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise refused_before() from None
    match content:
        case [str() as run_id, str() as entry_id]:
            return run_id, entry_id
        case _:
            raise refused_before()
