"""Calls that the end of a branch left open: what a client answers of them, and what nobody will."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from app.agent.pairing import result_of, unanswered_calls
from app.agui.said import Said
from app.clock import Clock
from app.conversation.blocks import ToolCall
from app.conversation.entries import StoredEntry
from app.conversation.messages import Message, Role
from app.conversation.views import model_view
from app.errors import InvalidInput
from app.store.adapter import RunRecord

NOT_EXECUTED = "This call was not executed: the conversation went on without a result of it."


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a result. `is_clients`: the run that made it named the tool as one of the client's, and
    nobody was asked about it. Of one name the agent's own tool is called."""

    call: ToolCall
    is_clients: bool


def holds_an_answer(entries: Sequence[StoredEntry]) -> bool:
    """Whether a model spoke in these entries, so that no open call is older than they are."""
    return any(message.role is Role.ASSISTANT for message in model_view(entries))


def open_calls(
    entries: Sequence[StoredEntry], maker: RunRecord, *, asked: Collection[JsonValue] = ()
) -> tuple[OpenCall, ...]:
    """The open calls of the end of a branch, in the order in which they were made.

    `entries` reach back to the run `maker`, which holds the last answer of a model in them. `asked` are the
    ids of the calls that wait for a person.
    """
    messages = model_view(entries)
    last = max((at for at, m in enumerate(messages) if m.role is Role.ASSISTANT), default=len(messages))
    named = _named(maker.input)
    return tuple(
        OpenCall(call, call.name in named and call.id not in asked)
        for call in unanswered_calls(messages[last:])
    )


def _named(input: Mapping[str, JsonValue] | None) -> frozenset[str]:
    tools = (input or {}).get("tools")
    if not isinstance(tools, list):
        return frozenset()
    names = (tool.get("name") for tool in tools if isinstance(tool, dict))
    return frozenset(name for name in names if isinstance(name, str))


def match_answers(given: Sequence[Said], calls: Sequence[OpenCall]) -> dict[str, Said]:
    """The client's answers by the call they are to: the first for each open call of its own tools."""
    waiting = {open_call.call.id for open_call in calls if open_call.is_clients}
    answers: dict[str, Said] = {}
    for said in given:
        (call,) = said.calls
        if call in waiting:
            answers.setdefault(call, said)
    return answers


def results(
    calls: Sequence[OpenCall],
    answers: Mapping[str, Message],
    *,
    abandons: bool,
    clients_alone: bool,
    agent: str,
    clock: Clock,
) -> tuple[list[Message], frozenset[str]]:
    """Results in call order, and which of them (by id) are the server's: with `abandons` a call that has no
    answer gets an error result, with `clients_alone` only one that was the client's to answer."""
    told: list[Message] = []
    settled: set[str] = set()
    for open_call in calls:
        call = open_call.call
        answer = answers.get(call.id)
        if answer is None and abandons and (open_call.is_clients or not clients_alone):
            answer = result_of(call, NOT_EXECUTED, is_error=True, clock=clock, sender_id=agent)
            settled.add(answer.id)
        if answer is not None:
            told.append(answer)
    return told, frozenset(settled)


def check_ids(answers: Sequence[Said], messages: Sequence[Said]) -> None:
    """InvalidInput for an answer whose id another message of the list bears, unless that is a copy of it: of
    two messages under one id a reader keeps only one."""
    others: dict[str, set[tuple[str, ...]]] = {}
    for said in messages:
        others.setdefault(said.id, set()).add((said.role, *said.calls))
    for said in answers:
        if len(others[said.id]) > 1:
            raise InvalidInput("Each result needs an id of its own.", field=f"{said.field}/id")
