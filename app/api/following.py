"""Event streams: of a live run, of one that ended, and of a thread at rest."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from app.agui.connect import connect
from app.agui.hydrate import RENDERER, hydrate
from app.agui.input import RunInput
from app.agui.replay import replay
from app.api.deps import Principal, Services
from app.api.streams import EventStream
from app.api.turns import Standing, headers_of_left
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import AppError, InvalidInput, NotFound
from app.runs.log import EventLog, Position
from app.runs.log_memory import MemoryLog
from app.runs.order import LiveRun
from app.store.adapter import RunRecord

AT_REST = 0
"""The epoch of streams that are no run's: no position of theirs can be resumed."""


def follow_run(
    services: Services,
    principal: Principal,
    live: LiveRun,
    *,
    legacy: bool,
    on_disconnect: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The stream of a run from its first event."""

    async def cancel() -> None:
        await services.runs.stop(principal.namespace, live.record.id, EndReason.CLIENT_LEFT)

    return EventStream(
        live.log.follow(legacy=legacy),
        on_shutdown=services.runs.drain,
        on_leave=cancel if on_disconnect == "cancel" else None,
        headers=headers,
    )


async def show_standing(
    services: Services, principal: Principal, asked: RunInput, standing: Standing
) -> Response:
    """The connect sequence of a thread at rest. Nothing is stored."""
    latest = standing.latest
    page = await services.store.messages(
        principal.namespace,
        asked.thread_id,
        renderer=RENDERER,
        run_id=None if latest is None else latest.id,
    )
    log = MemoryLog(0 if latest is None else latest.seq, AT_REST)
    log.append(
        connect(
            asked.thread_id,
            asked.run_id,
            latest,
            hydrate(page.rows, legacy=asked.legacy),
            pending_calls=standing.pending_calls,
            clock=services.clock,
        )
    )
    log.end()
    return EventStream(
        log.follow(legacy=asked.legacy),
        on_shutdown=services.runs.drain,
        headers=headers_of_left(standing.left),
    )


async def follow_record(
    services: Services, principal: Principal, run: RunRecord, after: Position | None, *, legacy: bool
) -> Response:
    """The stream of any run: its log while that is kept, else told again from storage.

    InvalidInput for a position that is not of this log.
    """
    log = await services.runs.log(principal.namespace, run.id) or await _told_again(services, principal, run)
    number = 0
    if after is not None:
        if (after.seq, after.epoch) != (log.seq, log.epoch) or after.number > log.last:
            raise InvalidInput("This position is not of the log that is kept.", field="Last-Event-ID")
        number = after.number
    return EventStream(log.follow(number, legacy=legacy), on_shutdown=services.runs.drain)


async def _told_again(services: Services, principal: Principal, run: RunRecord) -> EventLog:
    """The log of a run that has none any more. The row is read anew: only an end can be told again."""
    ended = await services.store.get_run(principal.namespace, run.thread_id, run.id)
    if ended is None:
        raise no_run(run.thread_id, run.id)
    if ended.status is RunStatus.RUNNING:
        raise NotSettled()
    entries = [row.entry for row in await services.store.run_entries(principal.namespace, run.id)]
    log = MemoryLog(ended.seq, ended.epoch + 1)
    log.append(replay(ended, entries))
    log.end()
    return log


def asked_position(request: Request) -> Position | None:
    """The position in `after` or `Last-Event-ID`, if there is one."""
    text = request.query_params.get("after") or request.headers.get("last-event-id")
    return Position.parse(text) if text else None


def no_run(thread_id: str, run_id: str) -> NotFound:
    return NotFound(f"There is no run {run_id!r} on thread {thread_id!r}.", field="run_id")


class NotSettled(AppError):
    """The run is over, but its end is not stored yet."""

    code = "not_settled"
    status = 503

    def __init__(self) -> None:
        super().__init__("The end of this run is not stored yet; try again in a moment.")
