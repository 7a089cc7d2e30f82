"""From a request to a started run, and from a run to its stream: what the AG-UI and the REST door share."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from app.agent.context import Runnable
from app.agui.input import RunInput
from app.agui.intake import Turn, take_turn
from app.agui.replay import replay
from app.api.deps import Principal, Services
from app.api.streams import EventStream
from app.clock import new_id
from app.conversation.messages import Role
from app.conversation.outcomes import EndReason, RunStatus
from app.conversation.views import model_view
from app.errors import AppError, HeadMoved, InvalidInput, NotFound, RunExists
from app.paths import events_path
from app.runs.log import EventLog, Position
from app.runs.log_memory import MemoryLog
from app.runs.manager import LiveRun, Order
from app.store.adapter import DEFAULT_GROUP, HeadRecord, RunRecord, ThreadAttributes

READ_AGAIN = 5
"""How often a request is read again because its thread went on meanwhile."""


async def start_turn(
    services: Services, principal: Principal, agent: Runnable, asked: RunInput
) -> tuple[LiveRun, Turn]:
    """Reads the request against the stored branch and starts the run.

    A thread that went on between reading and claiming is read again, so that nothing is said twice.
    """
    for _ in range(READ_AGAIN):
        turn, order = await _read(services, principal, agent, asked)
        try:
            return await services.runs.start(order), turn
        except HeadMoved:
            continue
    turn, order = await _read(services, principal, agent, asked)
    return await services.runs.start(order), turn


async def _read(
    services: Services, principal: Principal, agent: Runnable, asked: RunInput
) -> tuple[Turn, Order]:
    head = await services.store.head(principal.namespace, asked.thread_id, asked.message_ids())
    awaits_answer = await _awaits_answer(services, principal, asked, head)
    try:
        turn = take_turn(
            asked,
            head,
            sender_id=principal.sender_id,
            accepts=agent.accepts(),
            clock=services.clock,
            awaits_answer=awaits_answer,
        )
    except InvalidInput:
        # A request that was taken already is told so, whatever its list is worth by now.
        if await services.store.get_run(principal.namespace, asked.thread_id, asked.run_id) is not None:
            raise RunExists(asked.run_id) from None
        raise
    options = asked.options
    order = Order(
        namespace=principal.namespace,
        sender_id=principal.sender_id,
        thread_id=asked.thread_id,
        run_id=asked.run_id,
        agent=agent,
        entries=turn.entries,
        thread=ThreadAttributes(
            agent=agent.name,
            created_at=services.clock.now(),
            conversation_id=new_id("conversation"),
            group_id=options.group_id or DEFAULT_GROUP,
            parent_thread_id=options.parent_thread_id,
            hidden=options.hidden or False,
        ),
        parent_run_id=asked.parent_run_id,
        expected_head=None if head.head is None else head.head.id,
        state=turn.state,
        state_differs=turn.state_differs,
        meta=turn.meta,
        input=turn.input_record,
        digest=turn.digest,
    )
    return turn, order


async def _awaits_answer(services: Services, principal: Principal, asked: RunInput, head: HeadRecord) -> bool:
    """Whether the last thing said on the thread was said by a person, so that a run without new messages
    has something to answer. Looked up only where the list ends in nothing new."""
    last = next((said.id for said in reversed(asked.messages) if said.role == "user"), None)
    if head.head is None or (last is not None and last not in head.known):
        return False
    rows = await services.store.run_entries(principal.namespace, head.head.id)
    messages = model_view(row.entry for row in rows)
    return bool(messages) and messages[-1].role is Role.USER


def run_headers(live: LiveRun, turn: Turn) -> dict[str, str]:
    """Where the run can be followed, and how much of the request was not taken as history."""
    headers = {"Content-Location": events_path(live.record.thread_id, live.record.id)}
    if turn.ignored:
        headers["Verbatim-Ignored-Messages"] = str(turn.ignored)
    if turn.dropped_parts:
        headers["Verbatim-Dropped-Parts"] = str(turn.dropped_parts)
    return headers


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
