"""Answers to a paused run: AG-UI's `resume`, and the older `forwardedProps.command.resume`."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ag_ui.core import ResumeEntry
from jsonschema import Draft202012Validator
from jsonschema import exceptions as schema_errors
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from app.clock import Instant
from app.conversation.interrupts import Answer, Interrupt, InterruptReason
from app.conversation.outcomes import RunStatus
from app.errors import InterruptExpired, InterruptsOpen, InvalidInput
from app.store.adapter import RunRecord

logger = logging.getLogger(__name__)

OLDER_FIELD = "forwardedProps/command/resume"
LONGEST_NAME = 80
"""How much of a name in a payload a refusal repeats."""

_YES = frozenset({"approve", "accept"})
_NO = frozenset({"reject", "decline", "cancel"})
_NO_REMOTE: Registry[Any] = Registry()
"""Knows no schema but the one at hand, and fetches none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client says to a question, before it is known which are open.

    `target` is the id of an interrupt; in the older shape it may be that of a tool call, or None for the only
    question there is. `cancelled` is None in the older shape, whose verdict lies in `payload`.
    """

    field: str
    target: str | None
    payload: JsonValue
    cancelled: bool | None


@dataclass(frozen=True, slots=True)
class Resolved:
    """An answer to every open question, and how many replies were to none of them."""

    answers: tuple[Answer, ...]
    ignored: int


def read_replies(resume: Sequence[ResumeEntry], forwarded: JsonValue) -> tuple[Reply, ...]:
    """The replies of a request; the older shape counts only where the other is absent. Decisions that name
    nothing, or are no objects, are kept as replies to nothing."""
    if resume:
        return tuple(
            Reply(f"resume/{index}", entry.interrupt_id, entry.payload, entry.status == "cancelled")
            for index, entry in enumerate(resume)
        )
    command = forwarded.get("command") if isinstance(forwarded, dict) else None
    given = command.get("resume") if isinstance(command, dict) else None
    if given is None:
        return ()
    field = OLDER_FIELD
    if isinstance(given, dict):
        if "decisions" not in given:
            return (Reply(field, _target(given), given, None),)
        given, field = given["decisions"], f"{field}/decisions"
    if not isinstance(given, list):
        return (Reply(field, None, given, None),)
    return tuple(
        Reply(f"{field}/{index}", (_target(one) if isinstance(one, dict) else None) or "", one, None)
        for index, one in enumerate(given)
    )


def _target(decision: Mapping[str, JsonValue]) -> str | None:
    named = (decision.get(name) for name in ("interruptId", "toolCallId"))
    return next((id for id in named if isinstance(id, str) and id), None)


def open_interrupts(run: RunRecord | None) -> tuple[Interrupt, ...]:
    """The questions that wait for an answer: those of a paused run that was not resumed yet."""
    if run is None or run.status is not RunStatus.PAUSED or run.resumed_by is not None:
        return ()
    return tuple(Interrupt.model_validate(interrupt) for interrupt in run.interrupts)


def resolve(replies: Sequence[Reply], asked: Sequence[Interrupt], now: Instant) -> Resolved:
    """Matches replies to the open questions.

    InterruptsOpen unless every question is answered (AG-UI: `resume` covers every open interrupt);
    InterruptExpired for one that is answered too late and not cancelled; InvalidInput for a payload that does
    not fit its schema, or a second reply to one question.
    """
    given: dict[str, tuple[Reply, Answer]] = {}
    ignored = 0
    for reply in replies:
        meant = [interrupt for interrupt in asked if _is_meant(reply, interrupt, alone=len(asked) == 1)]
        ignored += not meant
        for interrupt in meant:
            if interrupt.id in given:
                raise InvalidInput("This question is answered twice.", field=reply.field)
            given[interrupt.id] = reply, _answer(reply, interrupt)
    if len(given) < len(asked):
        raise InterruptsOpen([interrupt.id for interrupt in asked])
    for interrupt in asked:
        _check(interrupt, *given[interrupt.id], now)
    return Resolved(tuple(given[interrupt.id][1] for interrupt in asked), ignored)


def _is_meant(reply: Reply, interrupt: Interrupt, *, alone: bool) -> bool:
    if reply.target is None:
        return alone
    return reply.target == interrupt.id or (reply.cancelled is None and reply.target == interrupt.call_id)


def _answer(reply: Reply, interrupt: Interrupt) -> Answer:
    if reply.cancelled is None:
        return _older(interrupt, reply.payload, named=reply.target is not None)
    return Answer(interrupt.id, reply.cancelled, None if reply.cancelled else reply.payload)


def _older(interrupt: Interrupt, given: JsonValue, *, named: bool) -> Answer:
    """A decision of the older shape. What bears no verdict and names no question is the payload itself."""
    approval = interrupt.reason == InterruptReason.TOOL_CALL
    if isinstance(given, bool):
        given = {"approved": given, "content": given} if approval else {"content": given}
    if not isinstance(given, dict) or not (named or {"approved", "action", "content"} & given.keys()):
        return Answer(interrupt.id, payload=given)
    verdict, content = _verdict(given), given.get("content")
    if not approval:
        return Answer(interrupt.id, not verdict, ({} if content is None else content) if verdict else None)
    more = {name: given[name] for name in ("editedArgs", "message") if given.get(name) is not None}
    return Answer(interrupt.id, payload={"approved": verdict, **more})


def _verdict(decision: Mapping[str, JsonValue]) -> bool:
    """The word of `action` counts before `approved`; content alone is a yes, and nothing at all a no."""
    action = decision.get("action")
    word = action.strip().lower() if isinstance(action, str) else ""
    if word in _YES or word in _NO:
        return word in _YES
    approved = decision.get("approved")
    return approved if isinstance(approved, bool) else decision.get("content") is not None


def _check(interrupt: Interrupt, reply: Reply, answer: Answer, now: Instant) -> None:
    if answer.cancelled:
        return
    if interrupt.expired(now):
        raise InterruptExpired(interrupt.id, reply.field)
    if interrupt.response_schema is None:
        return
    fault = _fault(interrupt, answer.payload)
    if fault is not None:
        path, rule = fault
        raise InvalidInput(
            f"The answer does not fit what was asked for: it fails the schema's `{rule}`.",
            field=f"{reply.field}/payload{path}",
        )


def _fault(interrupt: Interrupt, payload: JsonValue) -> tuple[str, str] | None:
    """Where a payload does not fit, and by which word of the schema. A schema that is none, or refers to
    something outside itself, cannot be held against anyone; the tool reads the answer once more anyway."""
    validator: Any = Draft202012Validator(interrupt.response_schema or {}, registry=_NO_REMOTE)
    try:
        error = cast(Any, schema_errors).best_match(validator.iter_errors(payload))
    except Unresolvable:
        logger.warning("the schema of interrupt %s refers to something that is not in it", interrupt.id)
        return None
    except RecursionError:
        return "", "$ref"
    except Exception as broken:  # of the many kinds that the library raises for what is no schema
        logger.warning("the schema of interrupt %s is none: %s", interrupt.id, type(broken).__name__)
        return None
    if error is None:
        return None
    return "".join(f"/{str(step)[:LONGEST_NAME]}" for step in error.absolute_path), str(error.validator)
