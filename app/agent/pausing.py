"""Calls that wait for a person: what is asked, and what the answers mean for the call.

The shape of an approval's answer is `{"approved": bool, "editedArgs"?: object, "message"?: string}`, as AG-UI
has it for interrupts that are bound to a tool call.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from app.agent.prompt import ToolDefinition
from app.clock import Clock, Instant, new_id
from app.conversation.blocks import ToolCall
from app.conversation.interrupts import Answer, Interrupt, InterruptReason

DECLINED = "The person declined this call."
CANCELLED = "The person closed the question without an answer."


@dataclass(frozen=True, slots=True)
class Pause:
    """A call waits for answers to these."""

    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """What a call knows that waited before: whether it was approved, its edited arguments, and what it was
    given so far, in the order in which it asked."""

    approved: bool = False
    arguments: str | None = None
    given: tuple[JsonValue, ...] = ()

    def written(self) -> dict[str, JsonValue]:
        return {"approved": self.approved, "arguments": self.arguments, "given": list(self.given)}

    @classmethod
    def read(cls, written: Mapping[str, JsonValue] | None) -> "Memory":
        if written is None:
            return cls()
        given = written.get("given")
        arguments = written.get("arguments")
        return cls(
            approved=written.get("approved") is True,
            arguments=arguments if isinstance(arguments, str) else None,
            given=tuple(given) if isinstance(given, list) else (),
        )


@dataclass(frozen=True, slots=True)
class Resumed:
    """A call that is taken up again. `answers` are those to questions of its own or of a sub-agent's, and not
    to the question whether to run it; they are looked at when the tool asks again."""

    memory: Memory = field(default_factory=Memory)
    answers: tuple[tuple[Interrupt, Answer], ...] = ()
    message: str | None = None
    """What the person said to the call's approval."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The person does not want the call."""

    words: str


def take_up(interrupts: Iterable[Interrupt], answers: Mapping[str, Answer]) -> Resumed | Refused | Pause:
    """What the answers mean for the one call that these interrupts belong to. A question without an answer
    is asked again, with all the others of the call."""
    asked = tuple(interrupts)
    if any(interrupt.id not in answers for interrupt in asked):
        return Pause(asked)
    memory, message = Memory(), None
    pairs: list[tuple[Interrupt, Answer]] = []
    for interrupt in asked:
        answer = answers[interrupt.id]
        memory = Memory.read(interrupt.memory)
        if _asks_leave(interrupt):
            if answer.cancelled:
                return Refused(CANCELLED)
            verdict = _verdict(answer.payload)
            if not verdict.approved:
                return Refused(f"{DECLINED} They said: {verdict.message}" if verdict.message else DECLINED)
            memory, message = Memory(True, verdict.arguments, memory.given), verdict.message
        elif answer.cancelled and interrupt.child is None:
            return Refused(CANCELLED)
        else:
            pairs.append((interrupt, answer))
    return Resumed(memory, tuple(pairs), message)


def _asks_leave(interrupt: Interrupt) -> bool:
    return interrupt.reason == InterruptReason.TOOL_CALL and interrupt.child is None


@dataclass(frozen=True, slots=True)
class _Verdict:
    approved: bool
    arguments: str | None = None
    message: str | None = None


def _verdict(payload: JsonValue) -> _Verdict:
    if not isinstance(payload, dict):
        return _Verdict(payload is True)
    edited, message = payload.get("editedArgs"), payload.get("message")
    return _Verdict(
        payload.get("approved") is True,
        to_json(edited).decode() if isinstance(edited, dict) else None,
        message if isinstance(message, str) else None,
    )


def approval(
    call: ToolCall,
    definition: ToolDefinition,
    arguments: Mapping[str, JsonValue],
    memory: Memory,
    expires_at: Instant | None,
) -> Interrupt:
    """The question whether a call may run."""
    return Interrupt(
        id=new_id("interrupt"),
        reason=InterruptReason.TOOL_CALL,
        message=f"May {call.name} run?",
        call_id=call.id,
        response_schema=_approval_schema(definition.parameters),
        expires_at=expires_at,
        metadata={"toolName": call.name, "arguments": dict(arguments)},
        memory=memory.written(),
    )


def question(
    call_id: str,
    message: str,
    schema: Mapping[str, JsonValue] | None,
    memory: Memory,
    expires_at: Instant | None,
) -> Interrupt:
    """A question of a tool's own."""
    return Interrupt(
        id=new_id("interrupt"),
        reason=InterruptReason.INPUT_REQUIRED,
        message=message,
        call_id=call_id,
        response_schema=None if schema is None else copy.deepcopy(dict(schema)),
        expires_at=expires_at,
        memory=memory.written(),
    )


def bubbled(interrupt: Interrupt, call_id: str, memory: Memory, child: Any) -> Interrupt:
    """A sub-agent's question as its caller asks it."""
    return interrupt.model_copy(update={"call_id": call_id, "memory": memory.written(), "child": child})


def _approval_schema(parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Definitions go to the root, where the references in the parameters look for them."""
    own = copy.deepcopy(dict(parameters))
    definitions = own.pop("$defs", None)
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "editedArgs": own,
            "message": {"type": "string"},
        },
        "required": ["approved"],
    }
    return schema if definitions is None else {**schema, "$defs": definitions}


def expiry(clock: Clock, seconds: float | None) -> Instant | None:
    """When a question that is asked now expires."""
    return None if seconds is None else clock.now() + int(seconds * 1_000_000_000)


def by_call(interrupts: Sequence[Interrupt]) -> dict[str, list[Interrupt]]:
    """The interrupts of each call."""
    found: dict[str, list[Interrupt]] = {}
    for interrupt in interrupts:
        if interrupt.call_id is not None:
            found.setdefault(interrupt.call_id, []).append(interrupt)
    return found
