"""Threads: list, make, read, change, delete."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api.deps import Caller, Principal, Services, Serving, ThreadId
from app.api.shapes import NewFork, NewThread, ThreadChange, ThreadList, ThreadShape, thread_shape
from app.clock import new_id
from app.errors import NotFound
from app.paths import thread_path
from app.store.adapter import (
    DEFAULT_GROUP,
    KEEP,
    MOST_PER_PAGE,
    ThreadAttributes,
    ThreadPatch,
    ThreadQuery,
    ThreadRecord,
)

router = APIRouter(tags=["threads"])


async def thread_of(services: Services, principal: Principal, thread_id: str) -> ThreadRecord:
    """The thread, or NotFound."""
    thread = await services.store.get_thread(principal.namespace, thread_id)
    if thread is None:
        raise no_thread(thread_id)
    return thread


def no_thread(thread_id: str) -> NotFound:
    return NotFound(f"There is no thread {thread_id!r}.", field="thread_id")


@router.get("/threads")
async def list_threads(
    services: Serving,
    principal: Caller,
    limit: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = 50,
    cursor: str | None = None,
    include_hidden: Annotated[str | None, Query(description="`true` shows hidden threads too.")] = None,
    group_id: str | None = None,
    parent_thread_id: str | None = None,
    agent: str | None = None,
    archived: bool | None = None,
) -> ThreadList:
    """Threads, newest activity first. Hidden ones are left out unless `include_hidden=true`.

    `archived` and the other filters show everything where they are absent. `nextCursor` is null on the
    last page.
    """
    page = await services.store.list_threads(
        principal.namespace,
        ThreadQuery(
            limit=limit,
            cursor=cursor,
            include_hidden=include_hidden == "true",
            group_id=group_id,
            parent_thread_id=parent_thread_id,
            agent=agent,
            archived=archived,
        ),
    )
    return ThreadList(threads=[thread_shape(thread) for thread in page.threads], next_cursor=page.next_cursor)


@router.post("/threads", status_code=201)
async def create_thread(
    services: Serving, principal: Caller, response: Response, asked: NewThread
) -> ThreadShape:
    """Makes an empty thread; 409 if the id is taken."""
    agent = services.agent(asked.agent) if asked.agent is not None else next(iter(services.agents.values()))
    thread_id = asked.thread_id or new_id("thread")
    attributes = ThreadAttributes(
        agent=agent.name,
        created_at=services.clock.now(),
        conversation_id=new_id("conversation"),
        group_id=asked.group_id or DEFAULT_GROUP,
        parent_thread_id=asked.parent_thread_id,
        hidden=asked.hidden,
    )
    thread = await services.store.create_thread(principal.namespace, thread_id, attributes, asked.title)
    response.headers["Location"] = thread_path(thread_id)
    return thread_shape(thread)


@router.post("/threads/{thread_id}/fork", status_code=201)
async def fork_thread(
    services: Serving, principal: Caller, thread_id: ThreadId, response: Response, asked: NewFork
) -> ThreadShape:
    """Makes a thread that goes on from `runId`, or from the head, of this one. Both share what was said so
    far; what is said from then on is each one's own. 409 if the id is taken or that run is live."""
    source = await thread_of(services, principal, thread_id)
    run_id = asked.run_id
    if run_id is not None and await services.store.get_run(principal.namespace, thread_id, run_id) is None:
        raise NotFound(f"There is no run {run_id!r} on thread {thread_id!r}.", field="runId")
    new_thread_id = asked.thread_id or new_id("thread")
    attributes = ThreadAttributes(
        agent=source.agent,
        created_at=services.clock.now(),
        conversation_id=source.conversation_id,
        group_id=source.group_id if asked.group_id is None else asked.group_id or DEFAULT_GROUP,
        parent_thread_id=asked.parent_thread_id or source.parent_thread_id,
        hidden=asked.hidden,
    )
    thread = await services.store.fork_thread(
        principal.namespace,
        thread_id,
        new_thread_id,
        attributes,
        run_id=run_id,
        title=asked.title,
    )
    response.headers["Location"] = thread_path(new_thread_id)
    return thread_shape(thread)


@router.get("/threads/{thread_id}")
async def read_thread(services: Serving, principal: Caller, thread_id: ThreadId) -> ThreadShape:
    """One thread, hidden or not."""
    return thread_shape(await thread_of(services, principal, thread_id))


@router.patch("/threads/{thread_id}")
async def change_thread(
    services: Serving, principal: Caller, thread_id: ThreadId, asked: ThreadChange
) -> ThreadShape:
    """Renames, archives or brings back a thread."""
    now = services.clock.now()
    patch = ThreadPatch(
        title=KEEP if asked.title is None else asked.title,
        archived_at=KEEP if asked.archived is None else now if asked.archived else None,
    )
    thread = await services.store.patch_thread(principal.namespace, thread_id, patch, now)
    if thread is None:
        raise no_thread(thread_id)
    return thread_shape(thread)


@router.delete("/threads/{thread_id}", status_code=204)
async def delete_thread(services: Serving, principal: Caller, thread_id: ThreadId) -> None:
    """Deletes the thread with all its runs and hidden children, for good. A live run is stopped first;
    409 if it does not end at once."""
    live = await services.runs.live(principal.namespace, thread_id)
    if live is not None:
        await services.runs.stop(principal.namespace, live.record.id)
    if not await services.store.delete_thread(principal.namespace, thread_id, services.clock.now()):
        raise no_thread(thread_id)
