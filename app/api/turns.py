"""From a request to a started run: what the AG-UI and the REST door share."""

from dataclasses import dataclass

from app.agent.context import Runnable
from app.agui.accepting import Terms
from app.agui.input import RunInput
from app.agui.intake import Left, NothingNew, Turn, take_turn
from app.api.deps import Principal, Services
from app.api.reading import Reader, Reading
from app.clock import new_id
from app.errors import AlreadyResumed, Conflict, HeadMoved, InvalidInput, RunExists, ThreadBusy
from app.paths import events_path, quoted
from app.runs.order import LiveRun, Order
from app.store.adapter import DEFAULT_GROUP, RunRecord, ThreadAttributes

READ_AGAIN = 5
"""How often a request is read again because its thread went on meanwhile."""


@dataclass(frozen=True, slots=True)
class Started:
    """A request that became a run."""

    live: LiveRun
    turn: Turn


@dataclass(frozen=True, slots=True)
class Standing:
    """A request that asks for nothing of a thread at rest: how that stands. `pending_calls` wait for the
    client."""

    latest: RunRecord | None
    pending_calls: tuple[str, ...]
    left: Left


async def start_turn(
    services: Services, principal: Principal, agent: Runnable, asked: RunInput
) -> Started | Standing:
    """Reads the request against the stored branch and starts the run.

    A thread that went on between reading and claiming is read again, so that nothing is said twice: a message
    that somebody else's request has said meanwhile is not taken for one that asks for another answer.
    """
    brought = False
    for attempt in range(READ_AGAIN + 1):
        reading = await Reader(services.store, principal.namespace, asked.thread_id).read(asked)
        if brought and not reading.heard.new:
            raise HeadMoved(asked.thread_id)
        brought = bool(reading.heard.new)
        turn = await _turn(services, principal, agent, asked, reading)
        if isinstance(turn, NothingNew):
            return await _standing(services, principal, asked, reading, turn)
        try:
            live = await services.runs.start(_order(services, principal, agent, asked, reading, turn))
        except (HeadMoved, AlreadyResumed):
            if attempt == READ_AGAIN:
                raise
        else:
            return Started(live, turn)
    raise AssertionError("the last attempt ends either way")


async def _turn(
    services: Services, principal: Principal, agent: Runnable, asked: RunInput, reading: Reading
) -> Turn | NothingNew:
    terms = Terms(agent.name, principal.sender_id, agent.accepts(), services.clock)
    try:
        return take_turn(asked, reading.heard, reading.past, terms)
    except (InvalidInput, Conflict):
        # A request that was taken already is told so, whatever its list is worth by now.
        await _refuse_used_id(services, principal, asked)
        raise


async def _refuse_used_id(services: Services, principal: Principal, asked: RunInput) -> None:
    if await services.store.get_run(principal.namespace, asked.thread_id, asked.run_id) is not None:
        raise RunExists(asked.run_id)


async def _standing(
    services: Services, principal: Principal, asked: RunInput, reading: Reading, turn: NothingNew
) -> Standing:
    await _refuse_used_id(services, principal, asked)
    live = await services.runs.live(principal.namespace, asked.thread_id)
    if live is not None:
        raise ThreadBusy(asked.thread_id, live.record.id)
    pending = tuple(one.call.id for one in reading.past.calls if one.is_clients)
    return Standing(reading.head.head, pending, turn.left)


def _order(
    services: Services,
    principal: Principal,
    agent: Runnable,
    asked: RunInput,
    reading: Reading,
    turn: Turn,
) -> Order:
    options = asked.options
    return Order(
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
        expected_head=reading.thread_head,
        previous_run_id=turn.branch.previous_run_id,
        branch_after_entry=turn.branch.after_entry,
        resumes=turn.resumes,
        answers=turn.answers,
        held=turn.held,
        settled=turn.settled,
        client_tools=turn.client_tools,
        state=turn.state,
        state_differs=turn.state_differs,
        meta=turn.meta,
        input=turn.input_record,
        digest=turn.digest,
    )


def run_headers(started: Started) -> dict[str, str]:
    """Where the run can be followed, which run it goes on from, and what of the request was left out."""
    record = started.live.record
    headers = {"Content-Location": events_path(record.thread_id, record.id)}
    if record.previous_run_id is not None:
        headers["Verbatim-Previous-Run"] = quoted(record.previous_run_id)
    return headers | headers_of_left(started.turn.left)


def headers_of_left(left: Left) -> dict[str, str]:
    """What of a request was left out, counted."""
    counts = {
        "Verbatim-Ignored-Messages": left.messages,
        "Verbatim-Dropped-Parts": left.parts,
        "Verbatim-Ignored-Resume": left.replies,
    }
    return {name: str(count) for name, count in counts.items() if count}
