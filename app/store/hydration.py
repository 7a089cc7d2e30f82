"""A branch as the entries a reader may see, in pages that end anywhere.

Those are the messages that are shown, and all application records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, case, null, or_, select

from app.store.adapter import MessagePage, WireRow
from app.store.bodies import CONTENT, CUSTOM, read_entry, size_of
from app.store.branch_entries import OF_RUNS
from app.store.cursors import check_limit, read_entry_cursor, refused_before
from app.store.database import SqlPart, Unread
from app.store.lineage import (
    BATCH,
    Stretch,
    batches,
    end_of_branch,
    is_of_thread,
    require_run,
    strides,
)
from app.store.tables import entries

_fits = and_(entries.c.renderer == bindparam("asked_renderer"), entries.c.wire.is_not(None))
_ROWS = select(
    entries.c.seq,
    entries.c.run_id,
    case((_fits, entries.c.wire), else_=null()).label("wire"),
    *(column for column in CONTENT if column is not entries.c.body),
    case((_fits, null()), else_=entries.c.body).label("body"),
).where(entries.c.seq.in_(bindparam("seqs", expanding=True)))
_READABLE: ColumnElement[bool] = or_(entries.c.shown, entries.c.kind == CUSTOM)
_SEQS = (
    select(entries.c.run_id, entries.c.seq)
    .where(OF_RUNS, _READABLE)
    .order_by(entries.c.run_id, entries.c.seq.desc())
)
_PLACE = select(entries.c.run_id).where(
    entries.c.seq == bindparam("at_seq"), entries.c.namespace == bindparam("ns"), _READABLE
)


class Hydrations(SqlPart):
    """Reads branches as messages for people."""

    async def messages(
        self,
        namespace: str,
        thread_id: str,
        *,
        renderer: int,
        limit: int | None = None,
        before: str | None = None,
        run_id: str | None = None,
    ) -> MessagePage:
        if limit is not None:
            check_limit(limit)
        asked = _Asked(namespace, thread_id, renderer, limit, before, run_id)
        return await self._read_parsed(partial(_messages, asked=asked))


@dataclass(frozen=True, slots=True)
class _Asked:
    namespace: str
    thread_id: str
    renderer: int
    limit: int | None
    before: str | None
    run_id: str | None


def _messages(connection: Connection, asked: _Asked) -> Unread[MessagePage]:
    found = _newest_seqs(connection, asked)
    limit = len(found) if asked.limit is None else asked.limit
    page = found[:limit][::-1]
    next_before = str(page[0]) if len(found) > limit else None
    rows = _rows(connection, asked, page)
    return Unread(size_of(rows), lambda: MessagePage([_wire_row(row) for row in rows], next_before))


def _newest_seqs(connection: Connection, asked: _Asked) -> list[int]:
    """The entries of the page, newest first, and one more if there is one.

    The branch is walked in steps of as many runs as will probably do, so a page costs the same however
    long its thread is.
    """
    wanted = None if asked.limit is None else asked.limit + 1
    step = BATCH if wanted is None else wanted // 2 + 1
    found: list[int] = []
    for stretches in strides(connection, asked.namespace, _start(connection, asked), step, step):
        found += _seqs(connection, asked.namespace, stretches)
        if wanted is not None and len(found) >= wanted:
            break
    return found[:wanted]


def _start(connection: Connection, asked: _Asked) -> Stretch | None:
    """The run to start in, as far as the page goes.

    A cursor names its entry, and with that the only branch that leads up to it: nothing is proved from the
    head.
    """
    if asked.before is None:
        return end_of_branch(connection, asked.namespace, asked.thread_id, asked.run_id)
    if asked.run_id is not None:
        require_run(connection, asked.namespace, asked.thread_id, asked.run_id)
    seq = read_entry_cursor(asked.before)
    run_id = connection.execute(_PLACE, {"at_seq": seq, "ns": asked.namespace}).scalar()
    if run_id is None or not is_of_thread(connection, asked.namespace, asked.thread_id, run_id):
        raise refused_before()
    return Stretch(run_id, seq - 1)


def _seqs(connection: Connection, namespace: str, stretches: Sequence[Stretch]) -> list[int]:
    """Entries a reader may see, newest first along the branch."""
    of_run: dict[str, list[int]] = {stretch.run_id: [] for stretch in stretches}
    for run_id, seq in connection.execute(_SEQS, {"ns": namespace, "runs": list(of_run)}):
        of_run[run_id].append(seq)
    return [seq for stretch in stretches for seq in of_run[stretch.run_id] if stretch.holds(seq)]


def _rows(connection: Connection, asked: _Asked, seqs: Sequence[int]) -> list[Row[Any]]:
    """The entries in this order, each with its rendering or, where that does not fit, its body."""
    found: dict[int, Row[Any]] = {}
    for lot in batches(seqs):
        for row in connection.execute(_ROWS, {"asked_renderer": asked.renderer, "seqs": lot}):
            found[row.seq] = row
    return [found[seq] for seq in seqs]


def _wire_row(row: Row[Any]) -> WireRow:
    entry = None if row.wire is not None else read_entry(row)
    return WireRow(row.seq, row.run_id, row.wire, entry)
