"""From a request to a started run: what the AG-UI and the REST door share."""

from dataclasses import dataclass

from app.agent.context import Runnable
from app.agui.accepting import Terms
from app.agui.input import RunInput
from app.agui.intake import Left, NothingNew, Turn, accepted_by, is_repeated, take_turn
from app.api.deps import Principal, Services
from app.api.joining import fold_of
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


@dataclass(frozen=True, slots=True)
class Joined:
    """A request that brings nothing to a live run, whose messages its list ends in: it follows that."""

    live: LiveRun


@dataclass(frozen=True, slots=True)
class Repeated:
    """A request that became this run already. `holds_more` tells that its list holds what the run said."""

    run: RunRecord
    holds_more: bool


Outcome = Started | Standing | Joined | Repeated


async def take_request(services: Services, principal: Principal, agent: Runnable, asked: RunInput) -> Outcome:
    """Reads the request against the stored branch and starts the run.

    A thread that went on between reading and claiming is read again, so that nothing is said twice: a message
    that somebody else's request has said meanwhile is not taken for one that asks for another answer. A
    request that was taken already starts nothing; RunExists if the run of its id began with something else.
    """
    try:
        return await _take(services, principal, agent, asked)
    except RunExists:
        return await _repeated(services, principal, asked)


async def _take(services: Services, principal: Principal, agent: Runnable, asked: RunInput) -> Outcome:
    brought = False
    for attempt in range(READ_AGAIN + 1):
        reading = await Reader(services.store, principal.namespace, asked.thread_id).read(asked)
        if brought and not reading.heard.new:
            await _refuse_used_id(services, principal, asked)
            raise HeadMoved(asked.thread_id)
        brought = bool(reading.heard.new)
        turn = await _turn(services, principal, agent, asked, reading)
        try:
            if isinstance(turn, NothingNew):
                return await _standing(services, principal, asked, reading, turn)
            live = await services.runs.start(_order(services, principal, agent, asked, reading, turn))
        except (HeadMoved, AlreadyResumed):
            if attempt == READ_AGAIN:
                raise
        except ThreadBusy as busy:
            beside = await _beside(services, principal, asked, reading, busy)
            if beside is not None:
                return beside
        else:
            return Started(live, turn)
    raise HeadMoved(asked.thread_id)


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


async def _repeated(services: Services, principal: Principal, asked: RunInput) -> Repeated:
    run = await services.store.get_run(principal.namespace, asked.thread_id, asked.run_id)
    if run is None or not is_repeated(asked, run) or await _brings_more(services, principal, asked):
        raise RunExists(asked.run_id)
    said = await services.store.run_entries(principal.namespace, run.id)
    log = await services.runs.log(principal.namespace, run.id)
    told = set[str]() if log is None else fold_of(log).message_ids
    own = told.union(row.entry.id for row in said) - accepted_by(run)
    return Repeated(run, holds_more=any(one.id in own for one in asked.messages))


async def _brings_more(services: Services, principal: Principal, asked: RunInput) -> bool:
    """Whether a person says something in the list that the thread does not hold."""
    head = await services.store.head(principal.namespace, asked.thread_id, asked.entry_ids())
    return any(said.role == "user" and said.id not in head.known for said in asked.messages)


async def _standing(
    services: Services, principal: Principal, asked: RunInput, reading: Reading, turn: NothingNew
) -> Standing:
    """ThreadBusy where a run is live."""
    await _refuse_used_id(services, principal, asked)
    live = await services.runs.live(principal.namespace, asked.thread_id)
    if live is not None:
        raise ThreadBusy(asked.thread_id, live.record.id)
    return standing_of(reading, turn.left)


def standing_of(reading: Reading, left: Left) -> Standing:
    pending = tuple(one.call.id for one in reading.past.calls if one.is_clients)
    return Standing(reading.head.head, pending, left)


async def _beside(
    services: Services, principal: Principal, asked: RunInput, reading: Reading, busy: ThreadBusy
) -> Joined | None:
    """What a request comes to whose thread has a live run. ThreadBusy if it wants something else than to
    follow that; None if the run is over by now."""
    live = await services.runs.live(principal.namespace, asked.thread_id)
    if live is None:
        return await _is_over(services, principal, busy)
    heard = reading.heard
    if heard.new or asked.replies or asked.records or not _is_of(live, reading, asked):
        raise busy
    return Joined(live)


async def _is_over(services: Services, principal: Principal, busy: ThreadBusy) -> None:
    """ThreadBusy where the run that is in the way is none of this process, or of another thread."""
    run = await services.store.get_run(principal.namespace, busy.thread_id, busy.run_id)
    if run is not None and run.ended_at is None:
        raise busy


def _is_of(live: LiveRun, reading: Reading, asked: RunInput) -> bool:
    """Whether the list ends in something of the live run; an empty one ends wherever the thread is."""
    heard = reading.heard
    if heard.is_empty:
        return asked.options.previous_run_id is None
    known = heard.last_known
    if known is not None and reading.head.known[known.id] == live.record.id:
        return True
    own = fold_of(live.log).message_ids
    return any(said.id in own for said in asked.messages)


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
    """What `headers_of_run` says, and what of the request was left out."""
    return headers_of_run(started.live.record) | headers_of_left(started.turn.left)


def headers_of_run(run: RunRecord) -> dict[str, str]:
    """Where the run can be followed, and which run it goes on from."""
    headers = {"Content-Location": events_path(run.thread_id, run.id)}
    if run.previous_run_id is not None:
        headers["Verbatim-Previous-Run"] = quoted(run.previous_run_id)
    return headers


def headers_of_left(left: Left) -> dict[str, str]:
    """What of a request was left out, counted."""
    counts = {
        "Verbatim-Ignored-Messages": left.messages,
        "Verbatim-Dropped-Parts": left.parts,
        "Verbatim-Ignored-Resume": left.replies,
    }
    return {name: str(count) for name, count in counts.items() if count}
