"""Streams that begin in the middle of a run: the present by one snapshot, and then what comes."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from starlette.responses import Response

from app.agui.connect import connect_live, renamed
from app.agui.fold import Fold
from app.agui.hydrate import RENDERER, hydrate
from app.api.deps import Principal, Services
from app.api.streams import EventStream
from app.runs.log import WRITE_LIMIT, EventLog
from app.runs.log_memory import MemoryLog
from app.store.adapter import RunRecord

AT_REST = 0
"""The epoch of frames that are no run's: no position of theirs can be resumed."""
_END = b'\ndata: {"type":"RUN_FINISHED",'


def fold_of(log: EventLog, *, legacy: bool = False) -> Fold:
    """What a client holds of the run alone that took all frames so far."""
    return Fold.of(log.frames(legacy=legacy), state=log.opening_state)


async def join_run(
    services: Services,
    principal: Principal,
    run: RunRecord,
    log: EventLog,
    *,
    legacy: bool,
    run_id: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The connect sequence of a run whose log is kept, and then the run, under `run_id` if the client asked
    under another id than the run's own."""
    shown = run_id or run.id
    before = await _before(services, principal, run, legacy=legacy)
    # From here on nothing waits: the snapshot and the place behind it are of one moment.
    after = log.last
    fold = Fold.of(log.frames(legacy=legacy), before, log.opening_state)
    if fold.is_over:
        after -= 1
    opening = MemoryLog(log.seq, AT_REST)
    opening.append(connect_live(run.thread_id, shown, fold, clock=services.clock))
    opening.end()
    pieces = _joined(opening, log, after, legacy)
    if shown != run.id:
        pieces = _renamed(pieces, shown)
    return EventStream(pieces, on_shutdown=services.runs.drain, headers=headers)


async def _before(
    services: Services, principal: Principal, run: RunRecord, *, legacy: bool
) -> list[dict[str, Any]]:
    """The messages of the branch up to the run."""
    page = await services.store.messages(principal.namespace, run.thread_id, renderer=RENDERER, run_id=run.id)
    return orjson.loads(hydrate([row for row in page.rows if row.run_id != run.id], legacy=legacy))


async def _joined(opening: EventLog, log: EventLog, after: int, legacy: bool) -> AsyncGenerator[bytes]:
    for pieces in (opening.follow(legacy=legacy), log.follow(after, legacy=legacy)):
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece


async def _renamed(pieces: AsyncGenerator[bytes], run_id: str) -> AsyncGenerator[bytes]:
    """The stream with its last event under the client's own run id."""
    last = b""
    async with aclosing(pieces):
        async for piece in pieces:
            if last:
                last += piece
                continue
            at = piece.find(_END)
            if at < 0:
                yield piece
                continue
            start = piece.rfind(b"\n\n", 0, at) + 2 if b"\n\n" in piece[:at] else 0
            last = piece[start:]
            if start:
                yield piece[:start]
    if last:
        position, _, event = last.partition(b"\ndata: ")
        shown = b"%b\ndata: %b\n\n" % (position, renamed(event[:-2], run_id))
        for start in range(0, len(shown), WRITE_LIMIT):
            yield shown[start : start + WRITE_LIMIT]
