"""Runs of a thread: start in plain words, list, follow, stop."""

from hashlib import sha256
from typing import Annotated

from ag_ui.core import PROTOCOL_VERSION
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from app.agent.context import Runnable
from app.agui.input import RunInput
from app.agui.options import PREVIOUS_RUN_FIELD, Options
from app.agui.said import Said
from app.api.deps import Caller, Principal, Protocol, RunId, Services, Serving, ThreadId
from app.api.following import asked_position, follow_record, no_run, show_outcome
from app.api.openapi import EVENT_STREAM
from app.api.records import read_records
from app.api.shapes import NewRun, RunList, RunShape, run_shape
from app.api.threads import thread_of
from app.api.turns import (
    Joined,
    Repeated,
    Standing,
    Started,
    headers_of_run,
    run_headers,
    take_request,
)
from app.clock import new_id
from app.conversation.blocks import Text
from app.conversation.entries import CustomEntry
from app.conversation.outcomes import RunStatus
from app.errors import InvalidInput, NotFound
from app.paths import run_path
from app.store.adapter import RunRecord

router = APIRouter(tags=["runs"])
After = Annotated[str | None, Query(description="A position, as `Last-Event-ID` would carry it.")]


async def run_of(services: Services, principal: Principal, thread_id: str, run_id: str) -> RunRecord:
    """The run, or NotFound."""
    run = await services.store.get_run(principal.namespace, thread_id, run_id)
    if run is None:
        raise no_run(thread_id, run_id)
    return run


@router.get("/threads/{thread_id}/runs")
async def list_runs(services: Serving, principal: Caller, thread_id: ThreadId) -> RunList:
    """Every run of the thread, of every branch, oldest first."""
    await thread_of(services, principal, thread_id)
    runs = await services.store.runs(principal.namespace, thread_id)
    return RunList(runs=[run_shape(run) for run in runs])


@router.post(
    "/threads/{thread_id}/runs",
    status_code=202,
    response_model=RunShape,
    responses={202: {"description": "The run has started."}, **EVENT_STREAM},
)
async def start_run(
    request: Request, services: Serving, principal: Caller, thread_id: ThreadId, asked: NewRun
) -> Response:
    """Says `text` to an agent on the thread, which is made if it is new.

    Answers 202 with the run, or with the run's event stream where `Accept` asks for text/event-stream.
    """
    default = next(iter(services.agents))
    agent = services.agent(asked.agent or await _agent_of(services, principal, thread_id) or default)
    records = read_records(asked.entries, principal, services.clock)
    input = _as_run_input(thread_id, asked, records)
    outcome = await _take(services, principal, agent, input)
    if "text/event-stream" in request.headers.get("accept", ""):
        return await show_outcome(services, principal, input, outcome)
    match outcome:
        case Started(live):
            run, headers = live.record, run_headers(outcome)
        case Joined(live):
            run, headers = live.record, headers_of_run(live.record)
        case Repeated(run):
            headers = headers_of_run(run)
    headers["Location"] = run_path(thread_id, run.id)
    return JSONResponse(run_shape(run).model_dump(by_alias=True), 202, headers)


async def _take(
    services: Services, principal: Principal, agent: Runnable, asked: RunInput
) -> Started | Joined | Repeated:
    """What is refused is named by the fields of this door."""
    try:
        outcome = await take_request(services, principal, agent, asked)
    except NotFound as error:
        if error.field != PREVIOUS_RUN_FIELD:
            raise
        raise NotFound(error.public, field="previousRunId") from None
    if isinstance(outcome, Standing):
        raise InvalidInput("A message of this id has been said and answered.", field="messageId")
    return outcome


async def _agent_of(services: Services, principal: Principal, thread_id: str) -> str | None:
    thread = await services.store.get_thread(principal.namespace, thread_id)
    return thread.agent if thread is not None and thread.agent in services.agents else None


def _as_run_input(thread_id: str, asked: NewRun, records: list[CustomEntry]) -> RunInput:
    """The same turn as AG-UI's, so that both doors keep the same rules. A run id alone makes a request that
    can be repeated, so the message takes its id from that."""
    run_id = asked.run_id or new_id("run")
    message_id = asked.message_id or f"msg_{sha256(run_id.encode()).hexdigest()[:32]}"
    said = Said(index=0, id=message_id, role="user", blocks=(Text(text=asked.text),))
    return RunInput(
        thread_id=thread_id,
        run_id=run_id,
        messages=(said,),
        protocol_version=PROTOCOL_VERSION,
        records=tuple(records),
        options=Options(
            group_id=asked.group_id,
            parent_thread_id=asked.parent_thread_id,
            hidden=asked.hidden,
            on_disconnect=asked.on_disconnect,
            previous_run_id=asked.previous_run_id,
        ),
        conversation={"previousRunId": asked.previous_run_id} if asked.previous_run_id else None,
    )


@router.get("/threads/{thread_id}/runs/{run_id}")
async def read_run(services: Serving, principal: Caller, thread_id: ThreadId, run_id: RunId) -> RunShape:
    """One run."""
    return run_shape(await run_of(services, principal, thread_id, run_id))


@router.get(
    "/threads/{thread_id}/runs/{run_id}/events",
    response_class=Response,
    responses=EVENT_STREAM,
)
async def follow_events(
    request: Request,
    services: Serving,
    principal: Caller,
    thread_id: ThreadId,
    run_id: RunId,
    protocol: Protocol = None,
    after: After = None,
) -> Response:
    """The run's events from the first, or behind a position (`Last-Event-ID` or `after`), until its end.

    A run that ended long ago is told again from storage, one content event a message. A position that is not
    kept is answered by the state and the messages up to the present, and what the run tells from there on.
    """
    run = await run_of(services, principal, thread_id, run_id)
    return await follow_record(services, principal, run, asked_position(request), legacy=protocol == "0")


@router.get(
    "/threads/{thread_id}/stream",
    response_class=Response,
    responses={204: {"description": "Nothing runs."}, **EVENT_STREAM},
)
async def follow_thread(
    request: Request,
    services: Serving,
    principal: Caller,
    thread_id: ThreadId,
    protocol: Protocol = None,
    after: After = None,
) -> Response:
    """The events of the run that is live on the thread; 204 when nothing runs.

    From its first event, or behind a position (`Last-Event-ID` or `after`); one of another run is answered
    by the state and the messages of the thread, and what the run tells from there on.
    """
    live = await services.runs.live(principal.namespace, thread_id)
    if live is None:
        await thread_of(services, principal, thread_id)
        return Response(status_code=204)
    return await follow_record(
        services, principal, live.record, asked_position(request), legacy=protocol == "0"
    )


@router.post(
    "/threads/{thread_id}/runs/{run_id}/stop",
    response_model=RunShape,
    responses={202: {"description": "The run was asked to stop and is about to."}},
)
async def stop_run(
    services: Serving, principal: Caller, thread_id: ThreadId, run_id: RunId, response: Response
) -> RunShape:
    """Stops a run. 200 with the run once it has ended (also if it had before), 202 if it takes longer."""
    await run_of(services, principal, thread_id, run_id)
    await services.runs.stop(principal.namespace, run_id)
    run = await run_of(services, principal, thread_id, run_id)
    response.status_code = 202 if run.status is RunStatus.RUNNING else 200
    return run_shape(run)
