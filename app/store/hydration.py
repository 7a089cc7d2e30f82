"""A branch as the entries a reader may see, in pages that end anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, case, null, select

from app.store.adapter import MessagePage, WireRow
from app.store.bodies import CONTENT, read_entry, size_of
from app.store.cursors import check_limit, read_entry_cursor, refused_before
from app.store.database import SqlPart, Unread
from app.store.lineage import BATCH, OF_RUNS, batches, end_of_branch, require_run, walk
from app.store.tables import entries

_fits = and_(entries.c.renderer == bindparam("asked_renderer"), entries.c.wire.is_not(None))
_ROWS = select(
    entries.c.seq,
    entries.c.run_id,
    case((_fits, entries.c.wire), else_=null()).label("wire"),
    *(column for column in CONTENT if column is not entries.c.body),
    case((_fits, null()), else_=entries.c.body).label("body"),
).where(entries.c.seq.in_(bindparam("seqs", expanding=True)))
_SEQS = (
    select(entries.c.run_id, entries.c.seq)
    .where(OF_RUNS, entries.c.shown)
    .order_by(entries.c.run_id, entries.c.seq.desc())
)
_PLACE = select(entries.c.run_id, entries.c.namespace, entries.c.thread_id, entries.c.shown).where(
    entries.c.seq == bindparam("at_seq")
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
    run_id, below = _start(connection, asked)
    wanted = None if asked.limit is None else asked.limit + 1
    step = BATCH if wanted is None else wanted // 2 + 1
    found: list[int] = []
    while run_id is not None and (wanted is None or len(found) < wanted):
        chain = walk(connection, asked.namespace, run_id, step + 1)
        found += _seqs(connection, asked.namespace, chain[:step], below)
        run_id, below = (chain[step] if len(chain) > step else None), None
    return found[:wanted]


def _start(connection: Connection, asked: _Asked) -> tuple[str | None, int | None]:
    """The run to start in, and the entry below which to stay in it.

    A cursor names its entry, and with that the only branch that leads up to it: nothing is proved from the
    head.
    """
    if asked.before is None:
        return end_of_branch(connection, asked.namespace, asked.thread_id, asked.run_id), None
    if asked.run_id is not None:
        require_run(connection, asked.namespace, asked.thread_id, asked.run_id)
    seq = read_entry_cursor(asked.before)
    entry = connection.execute(_PLACE, {"at_seq": seq}).first()
    if entry is None or tuple(entry)[1:] != (asked.namespace, asked.thread_id, True):
        raise refused_before()
    return entry.run_id, seq


def _seqs(connection: Connection, namespace: str, run_ids: Sequence[str], below: int | None) -> list[int]:
    """Entries a reader sees, newest first along the branch, in the first run only those before `below`."""
    of_run: dict[str, list[int]] = {run_id: [] for run_id in run_ids}
    for run_id, seq in connection.execute(_SEQS, {"ns": namespace, "runs": run_ids}):
        if below is None or run_id != run_ids[0] or seq < below:
            of_run[run_id].append(seq)
    return [seq for run_id in run_ids for seq in of_run[run_id]]


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
