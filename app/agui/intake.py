"""A request and the stored branch make a turn: what is new, and what the run shall know beside it.

The history is the server's. A client's list tells what it has seen; only its new user messages, its answers
to open calls of its own tools and its answers to a paused run add to it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from app.agent.prompt import ToolDefinition
from app.agui.accepting import Terms, accept_answer, accept_message, own_metadata
from app.agui.branching import Branch, Heard, unheard, wished
from app.agui.client_calls import OpenCall, check_ids, match_answers, results
from app.agui.encoding import canonical
from app.agui.input import RunInput
from app.agui.resume import Resolved, open_interrupts, resolve
from app.agui.said import Said
from app.clock import Clock
from app.conversation.blocks import Reminder
from app.conversation.entries import MessageEntry, StoredEntry
from app.conversation.interrupts import Answer, Interrupt
from app.conversation.messages import Injected, Message, user_message
from app.errors import InterruptsOpen, InvalidInput
from app.store.adapter import KEEP, Keep, RunRecord

_CONTEXT = "context"
"""The origin of the reminder that carries a client's context, and the name of its digest in a run's meta."""
_ACCEPTED = "accepted"
"""The name, in a run's input, of the ids of the client's messages that came with it."""


@dataclass(frozen=True, slots=True)
class Past:
    """What a turn goes on from.

    `branch` is where its list leads, None if that asks for nothing; `base` the run that the turn continues,
    and `calls` what that left open. `asked_by` is the run whose questions, if it has open ones, come first.
    """

    branch: Branch | None = None
    base: RunRecord | None = None
    calls: Sequence[OpenCall] = ()
    asked_by: RunRecord | None = None

    @property
    def asked(self) -> tuple[Interrupt, ...]:
        return open_interrupts(self.asked_by)


@dataclass(frozen=True, slots=True)
class Left:
    """What was left out of a request: messages that are no history, parts of unknown types, and replies to
    questions that are not open."""

    messages: int = 0
    parts: int = 0
    replies: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """What a run starts with.

    `entries` open it, in order; none means: answer what is there. `settled` of them are results that the
    server gave to calls which nobody answered. `answers` take up the run `resumes`; `held` is then said once
    its calls have their results. `state` and `meta` are for the claim, and `state_differs` whether the client
    sent something else than what holds then.
    """

    branch: Branch
    entries: tuple[StoredEntry, ...]
    held: tuple[Message, ...]
    settled: frozenset[str]
    resumes: RunRecord | None
    answers: tuple[Answer, ...]
    client_tools: tuple[ToolDefinition, ...]
    left: Left
    state: JsonValue | Keep
    state_differs: bool
    meta: Mapping[str, JsonValue] | Keep
    input_record: dict[str, JsonValue]
    digest: str


@dataclass(frozen=True, slots=True)
class NothingNew:
    """The request brings nothing and asks for nothing: it is told how the thread stands."""

    left: Left


def take_turn(input: RunInput, heard: Heard, past: Past, terms: Terms) -> Turn | NothingNew:
    """Reads the request against what the thread holds; nothing is stored.

    InvalidInput where a new message holds nothing to read or media that is not taken (named by its field),
    where an answer does not fit its question, and, for `messages`, where a thread without runs is asked for
    nothing; InterruptsOpen and InterruptExpired where a paused run is not answered as it must be.
    """
    given = match_answers(heard.answers, past.calls)
    asked = past.asked
    resolved = resolve(input.replies, asked, terms.clock.now()) if asked and input.replies else None
    left = _left(input, heard, given, resolved)
    branch = _branch(input, past, given, resolved)
    if branch is None:
        if past.base is None:
            raise InvalidInput(
                "There is no new user message, and nothing waits for an answer.", field="messages"
            )
        return NothingNew(left)
    if asked and resolved is None:
        raise InterruptsOpen([interrupt.id for interrupt in asked])
    goes_on = bool(heard.new or branch.copied)
    told, settled = _results(input, past, given, terms, abandons=goes_on, resumes=resolved is not None)
    new = [accept_message(said, terms) for said in heard.new]
    new, meta = _add_context(new, input, branch, past.base, terms.clock)
    held = tuple(new) if resolved else ()
    opening = (
        *map(MessageEntry, told),
        *input.records,
        *branch.copied,
        *map(MessageEntry, () if resolved else new),
    )
    state: JsonValue | Keep = KEEP if input.state in (None, {}) else input.state
    brought = _brought(input, {*(entry.id for entry in opening), *(message.id for message in held)})
    return Turn(
        branch=branch,
        entries=opening,
        held=held,
        settled=settled,
        resumes=past.asked_by if resolved else None,
        answers=resolved.answers if resolved else (),
        client_tools=(*input.client_tools, *_still_waited_for(input, past, told)),
        left=left,
        state=state,
        state_differs=_differs(state, input, past.base),
        meta=meta,
        input_record=_record(input, brought),
        digest=digest(input, brought),
    )


def _still_waited_for(input: RunInput, past: Past, told: Sequence[Message]) -> Iterable[ToolDefinition]:
    """The tools of open calls that the client has not answered yet, where this request does not name them.
    The run ends on such a call before it asks a model, so they are offered to none."""
    named = {tool.name for tool in input.client_tools}
    answered = {message.call_id for message in told}
    for one in past.calls:
        call = one.call
        if one.is_clients and call.id not in answered and call.name not in named:
            named.add(call.name)
            yield ToolDefinition(call.name, "", {"type": "object", "properties": {}})


def _left(input: RunInput, heard: Heard, given: Mapping[str, Said], resolved: Resolved | None) -> Left:
    taken = given.values()
    return Left(
        messages=heard.ignored + unheard(heard, {said.index for said in taken}),
        parts=sum(said.dropped for said in (*heard.new, *taken)),
        replies=resolved.ignored if resolved else len(input.replies),
    )


def _branch(
    input: RunInput, past: Past, given: Mapping[str, Said], resolved: Resolved | None
) -> Branch | None:
    """Answers to a paused run go on from it whatever the list says; answers to calls alone never branch."""
    if resolved is not None and past.asked_by is not None:
        return Branch(past.asked_by.id)
    if past.branch is None and given:
        return wished(input.options.previous_run_id)
    return past.branch


def _results(
    input: RunInput,
    past: Past,
    given: Mapping[str, Said],
    terms: Terms,
    *,
    abandons: bool,
    resumes: bool,
) -> tuple[list[Message], frozenset[str]]:
    """What the open calls come to. Those of a paused run are its own to answer."""
    check_ids(list(given.values()), input.messages)
    calls = {open_call.call.id: open_call.call for open_call in past.calls}
    return results(
        past.calls,
        {id: accept_answer(calls[id], said, terms) for id, said in given.items()},
        abandons=abandons,
        clients_alone=resumes,
        agent=terms.agent,
        clock=terms.clock,
    )


def _add_context(
    messages: list[Message], input: RunInput, branch: Branch, base: RunRecord | None, clock: Clock
) -> tuple[list[Message], Mapping[str, JsonValue] | Keep]:
    """Puts the client's context behind what the person wrote, for the model alone, unless the branch got
    the same last. A message of its own carries it where nobody wrote anything; what is copied brings its own.
    """
    before: Mapping[str, JsonValue] = (base.meta if base is not None else None) or {}
    kept: Mapping[str, JsonValue] | Keep = KEEP
    if branch.source is not None and branch.source.meta and _CONTEXT in branch.source.meta:
        kept = before = {**before, _CONTEXT: branch.source.meta[_CONTEXT]}
    text = "\n".join(f"{description}: {value}" for description, value in input.context if value.strip())
    mark = sha256(text.encode()).hexdigest()
    if not text or before.get(_CONTEXT) == mark:
        return messages, kept
    reminder = Reminder(text=text, origin=_CONTEXT)
    if messages:
        last = messages[-1]
        added = [*messages[:-1], last.model_copy(update={"content": (*last.content, reminder)})]
    else:
        added = [user_message([reminder], clock=clock, injected=Injected.META, origin=_CONTEXT)]
    return added, {**before, _CONTEXT: mark}


def is_repeated(input: RunInput, run: RunRecord) -> bool:
    """Whether the request brings what the run was started with, whatever else its list holds by now."""
    return run.digest == digest(input, _brought(input, accepted_by(run)))


def accepted_by(run: RunRecord) -> frozenset[str]:
    """The ids of the client's messages that came with the request for the run."""
    accepted = (run.input or {}).get(_ACCEPTED)
    return frozenset(map(str, accepted)) if isinstance(accepted, list) else frozenset()


def _brought(input: RunInput, new: Collection[str]) -> list[Said]:
    """The user and tool messages of these ids. A list may hold one id twice; the first counts."""
    first: dict[str, Said] = {}
    for said in input.messages:
        if said.id in new and said.role in ("user", "tool"):
            first.setdefault(said.id, said)
    return list(first.values())


def digest(input: RunInput, brought: Sequence[Said]) -> str:
    """SHA-256, in hex, of what a request brings: these messages of it, and all that is beside the messages.
    The same turn has the same digest whatever else its list holds."""
    material = {
        "messages": [_material(said) for said in brought],
        "records": [[record.name, record.value] for record in input.records],
        "resume": [[reply.target, reply.cancelled, reply.payload] for reply in input.replies],
        "tools": list(input.tools),
        "context": [list(item) for item in input.context],
        "state": input.state,
        "conversation": input.conversation,
    }
    return sha256(canonical(material)).hexdigest()


def _material(said: Said) -> dict[str, object]:
    content = [block.model_dump(mode="json", by_alias=True) for block in said.blocks]
    if said.role == "tool":
        return {"id": said.id, "call": said.calls[0], "content": content, "error": said.error}
    return {"id": said.id, "name": said.name, "content": content, "metadata": own_metadata(said)}


def _differs(state: JsonValue | Keep, input: RunInput, base: RunRecord | None) -> bool:
    stored = base.state if base is not None else None
    shown = stored if isinstance(state, Keep) else state
    return _canonical_state(shown) != _canonical_state(input.state)


def _canonical_state(state: JsonValue) -> bytes:
    return canonical({} if state is None else state)


def _record(input: RunInput, brought: Sequence[Said]) -> dict[str, JsonValue]:
    """What is kept of the request beside the run's own columns: of messages the ids, no headers, and of
    `forwardedProps` only what is meant for the server, as the rest may hold secrets."""
    record: dict[str, JsonValue] = {
        _ACCEPTED: [said.id for said in brought],
        "protocolVersion": input.protocol_version,
        "parentRunId": input.parent_run_id,
        "tools": list(input.tools),
        "context": [{"description": description, "value": value} for description, value in input.context],
        "conversation": input.conversation,
    }
    return {key: value for key, value in record.items() if value}
