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
from app.conversation.outcomes import EndReason
from app.conversation.views import model_view
from app.errors import InvalidInput
from app.runs.log import Position
from app.runs.log_memory import MemoryLog
from app.runs.manager import LiveRun, Order
from app.store.adapter import DEFAULT_GROUP, HeadRecord, RunRecord, ThreadAttributes

EVENT_STREAM = {
    200: {"description": "AG-UI events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
"""How OpenAPI is told of a stream."""


async def start_turn(
    services: Services, principal: Principal, agent: Runnable, asked: RunInput
) -> tuple[LiveRun, Turn]:
    """Reads the request against the stored branch and starts the run."""
    head = await services.store.head(principal.namespace, asked.thread_id, asked.message_ids())
    turn = take_turn(
        asked,
        head,
        sender_id=principal.sender_id,
        accepts=agent.accepts(),
        clock=services.clock,
        awaits_answer=await _awaits_answer(services, principal, asked, head),
    )
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
        state=turn.state,
        state_differs=turn.state_differs,
        meta=turn.meta,
        input=turn.input_record,
        digest=turn.digest,
    )
    return await services.runs.start(order), turn


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
    headers = {"Content-Location": f"/threads/{live.record.thread_id}/runs/{live.record.id}/events"}
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
    services: Services, principal: Principal, run: RunRecord, request: Request, *, legacy: bool
) -> Response:
    """The stream of any run: its log while that is kept, else told again from storage."""
    log = services.runs.log(principal.namespace, run.id)
    position = _position(request)
    if log is None:
        entries = [row.entry for row in await services.store.run_entries(principal.namespace, run.id)]
        told = MemoryLog(run.seq, run.epoch + 1)
        told.append(replay(run, entries))
        told.end()
        log = told
    after = 0
    if position is not None:
        if (position.seq, position.epoch) != (log.seq, log.epoch):
            raise InvalidInput(
                "This position is of another log than the one that is kept.", field="Last-Event-ID"
            )
        after = position.number
    return EventStream(log.follow(after, legacy=legacy), on_shutdown=services.runs.drain)


def _position(request: Request) -> Position | None:
    text = request.query_params.get("after") or request.headers.get("last-event-id")
    return Position.parse(text) if text else None
