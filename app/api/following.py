"""Event streams: of a live run, of one that ended, and of a thread at rest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ag_ui.core import PROTOCOL_VERSION
from starlette.requests import Request
from starlette.responses import Response

from app.agui.connect import connect
from app.agui.hydrate import RENDERER, hydrate
from app.agui.input import RunInput
from app.agui.intake import Left
from app.agui.replay import replay
from app.api.deps import Principal, Services
from app.api.joining import AT_REST, join_run
from app.api.reading import Reader
from app.api.streams import EventStream
from app.api.turns import (
    Joined,
    Outcome,
    Repeated,
    Standing,
    Started,
    headers_of_left,
    headers_of_run,
    run_headers,
    standing_of,
)
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import AppError, NotFound
from app.runs.log import EventLog, Position
from app.runs.log_memory import MemoryLog
from app.store.adapter import RunRecord


async def show_outcome(
    services: Services, principal: Principal, asked: RunInput, outcome: Outcome
) -> Response:
    """The stream that a request is answered with."""
    match outcome:
        case Started(live):
            return _follow(
                services,
                principal,
                live.record,
                live.log,
                legacy=asked.legacy,
                on_disconnect=asked.options.on_disconnect,
                headers=run_headers(outcome),
            )
        case Standing(latest, pending, left):
            headers = headers_of_left(left)
            return await _show_rest(services, principal, asked, latest, pending, headers=headers)
        case Joined(live):
            headers = headers_of_run(live.record)
            return await join_run(
                services,
                principal,
                live.record,
                live.log,
                legacy=asked.legacy,
                run_id=asked.run_id,
                headers=headers,
            )
        case Repeated():
            return await _show_repeated(services, principal, asked, outcome)


async def _show_repeated(
    services: Services, principal: Principal, asked: RunInput, repeated: Repeated
) -> Response:
    run, headers = repeated.run, headers_of_run(repeated.run)
    if repeated.holds_more:
        return await _show_present(services, principal, run, legacy=asked.legacy, headers=headers)
    log = await _log_of(services, principal, run)
    leaving = asked.options.on_disconnect
    return _follow(services, principal, run, log, legacy=asked.legacy, on_disconnect=leaving, headers=headers)


async def show_thread(services: Services, principal: Principal, asked: RunInput) -> Response:
    """The connect sequence of a thread, known or not, and then its live run, if it has one. Nothing is
    stored."""
    live = await services.runs.live(principal.namespace, asked.thread_id)
    if live is not None:
        headers = headers_of_run(live.record)
        return await join_run(
            services, principal, live.record, live.log, legacy=asked.legacy, headers=headers
        )
    standing = await _standing(services, principal, asked)
    latest = standing.latest
    if latest is not None:
        asked = replace(asked, run_id=latest.id)
    return await _show_rest(services, principal, asked, latest, standing.pending_calls)


def _follow(
    services: Services,
    principal: Principal,
    run: RunRecord,
    log: EventLog,
    *,
    legacy: bool,
    after: int = 0,
    on_disconnect: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The stream of a run behind a frame of its log."""

    async def cancel() -> None:
        await services.runs.stop(principal.namespace, run.id, EndReason.CLIENT_LEFT)

    return EventStream(
        log.follow(after, legacy=legacy),
        on_shutdown=services.runs.drain,
        on_leave=cancel if on_disconnect == "cancel" else None,
        headers=headers,
    )


async def follow_record(
    services: Services, principal: Principal, run: RunRecord, after: Position | None, *, legacy: bool
) -> Response:
    """The stream of any run: its log while that is kept, else told again from storage. Behind a position of
    another log, or one that is not kept, comes the connect sequence, and never a hole."""
    log = await _log_of(services, principal, run)
    if after is None:
        return _follow(services, principal, run, log, legacy=legacy)
    if (after.seq, after.epoch) == (log.seq, log.epoch) and after.number <= log.last:
        return _follow(services, principal, run, log, legacy=legacy, after=after.number)
    return await _show_present(services, principal, run, legacy=legacy)


async def _show_present(
    services: Services,
    principal: Principal,
    run: RunRecord,
    *,
    legacy: bool,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The connect sequence of the branch that ends with the run, and then that, if it is live."""
    log = await services.runs.log(principal.namespace, run.id)
    if log is not None and not log.ended:
        return await join_run(services, principal, run, log, legacy=legacy, headers=headers)
    ended = await _settled(services, principal, run)
    asked = RunInput(thread_id=run.thread_id, run_id=run.id, messages=())
    standing = await _standing(services, principal, asked)
    head = standing.latest
    pending = standing.pending_calls if head is not None and head.id == run.id else ()
    version = None if legacy else PROTOCOL_VERSION
    asked = replace(asked, protocol_version=version)
    return await _show_rest(services, principal, asked, ended, pending, headers=headers)


async def _standing(services: Services, principal: Principal, asked: RunInput) -> Standing:
    """How the head of a thread stands."""
    nothing = RunInput(thread_id=asked.thread_id, run_id=asked.run_id, messages=())
    reading = await Reader(services.store, principal.namespace, asked.thread_id).read(nothing)
    return standing_of(reading, Left())


async def _show_rest(
    services: Services,
    principal: Principal,
    asked: RunInput,
    latest: RunRecord | None,
    pending_calls: Sequence[str],
    *,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The connect sequence of a thread at rest."""
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
            pending_calls=pending_calls,
            clock=services.clock,
        )
    )
    log.end()
    return EventStream(log.follow(legacy=asked.legacy), on_shutdown=services.runs.drain, headers=headers)


async def _log_of(services: Services, principal: Principal, run: RunRecord) -> EventLog:
    """The log of a run while that is kept, and else one that tells it again from storage."""
    log = await services.runs.log(principal.namespace, run.id)
    if log is not None:
        return log
    ended = await _settled(services, principal, run)
    entries = [row.entry for row in await services.store.run_entries(principal.namespace, run.id)]
    again = MemoryLog(ended.seq, ended.epoch + 1)
    again.append(replay(ended, entries))
    again.end()
    return again


async def _settled(services: Services, principal: Principal, run: RunRecord) -> RunRecord:
    """The run at its end, read anew. NotSettled if that is not stored yet."""
    ended = await services.store.get_run(principal.namespace, run.thread_id, run.id)
    if ended is None:
        raise no_run(run.thread_id, run.id)
    if ended.status is RunStatus.RUNNING:
        raise NotSettled()
    return ended


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
