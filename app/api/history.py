"""What stands on a thread: messages for AG-UI clients, shared state, transcript pages, and added records."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.agui.hydrate import RENDERER, hydrate
from app.api.deps import Caller, Protocol, Serving, ThreadId
from app.api.records import read_records, refuse_known
from app.api.shapes import NewEntries, PostedEntries, PostedEntry, latest_shape
from app.api.threads import thread_of
from app.clock import format_millis
from app.conversation.entries import CustomEntry, TransientEntry
from app.store.adapter import MOST_PER_PAGE, TurnRow, WireRow

router = APIRouter(tags=["history"])
Limit = Annotated[int | None, Query(ge=1, le=MOST_PER_PAGE)]


@router.get("/threads/{thread_id}/messages")
async def read_messages(
    services: Serving,
    principal: Caller,
    thread_id: ThreadId,
    limit: Limit = None,
    before: str | None = None,
    run_id: str | None = None,
    protocol: Protocol = None,
) -> Response:
    """AG-UI messages of the branch that ends at the head, or at `run_id`, oldest first.

    All of them without `limit`; with it the newest `limit` entries, and `nextBefore` for the page before
    (absent at the start). Every message has `metadata.createdAt`, RFC 3339 or null.
    """
    await thread_of(services, principal, thread_id)
    page = await services.store.messages(
        principal.namespace, thread_id, renderer=RENDERER, limit=limit, before=before, run_id=run_id
    )
    messages = hydrate(page.rows, legacy=protocol == "0")
    head = b'{"threadId":%b,"messages":%b' % (orjson.dumps(thread_id), messages)
    tail = b"}" if page.next_before is None else b',"nextBefore":%b}' % orjson.dumps(page.next_before)
    return Response(head + tail, media_type="application/json")


@router.get("/threads/{thread_id}/state")
async def read_state(services: Serving, principal: Caller, thread_id: ThreadId) -> dict[str, Any]:
    """The shared state that the thread's head run left; `{}` before there is any."""
    await thread_of(services, principal, thread_id)
    record = await services.store.head(principal.namespace, thread_id, ())
    state = None if record.head is None else record.head.state
    return {"threadId": thread_id, "state": {} if state is None else state}


@router.get("/threads/{thread_id}/transcript")
async def read_transcript(
    services: Serving,
    principal: Caller,
    thread_id: ThreadId,
    limit: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = 50,
    before_run_id: str | None = None,
    run_id: str | None = None,
) -> Response:
    """Complete turns, oldest first on a page and the newest page first.

    `nextBeforeRunId` is null at the start of history; `latest` tells how the thread stands, on every page.
    """
    await thread_of(services, principal, thread_id)
    page = await services.store.transcript_page(
        principal.namespace, thread_id, limit=limit, before_run_id=before_run_id, run_id=run_id
    )
    document = {
        "rows": [_turn(row) for row in page.rows],
        "nextBeforeRunId": page.next_before_run_id,
        "latest": latest_shape(page.latest),
    }
    return Response(orjson.dumps(document), media_type="application/json")


def _turn(row: TurnRow) -> dict[str, Any]:
    rows = [WireRow(0, row.run_id, None, entry) for entry in row.entries]
    return {
        "runId": row.run_id,
        "previousRunId": row.previous_run_id,
        "status": row.status,
        "createdAt": format_millis(row.created_at),
        "messages": orjson.Fragment(hydrate(rows, legacy=False)),
    }


@router.post("/threads/{thread_id}/entries", status_code=201)
async def post_entries(
    services: Serving, principal: Caller, thread_id: ThreadId, asked: NewEntries
) -> PostedEntries:
    """Adds records of the application to the thread's head run, live or not. Those who follow it get them
    at once; clients see them as activity messages, and models never. 409 for an id that it has already.
    """
    await thread_of(services, principal, thread_id)
    records = read_records(asked.entries, principal, services.clock)
    head = await services.store.head(principal.namespace, thread_id, [record.id for record in records])
    refuse_known(records, frozenset(head.known))
    entries = [
        TransientEntry(record.name, record.value, record.id) if entry.transient else record
        for entry, record in zip(asked.entries, records, strict=True)
    ]
    run_id = await services.runs.post(principal.namespace, thread_id, entries)
    posted = [PostedEntry(id=entry.id, stored=isinstance(entry, CustomEntry)) for entry in entries]
    return PostedEntries(run_id=run_id, entries=posted)
