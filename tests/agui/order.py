"""The order rules of AG-UI 1.0 for one run, checked on frames."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

from app.frames import Frame, Variants

Told = dict[str, Any]

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_OPENS = {
    "TEXT_MESSAGE_START": ("text", "messageId"),
    "REASONING_START": ("span", "messageId"),
    "REASONING_MESSAGE_START": ("reasoning", "messageId"),
    "TOOL_CALL_START": ("call", "toolCallId"),
    "STEP_STARTED": ("step", "stepName"),
    "SUBAGENT_STARTED": ("subagent", "subagentRunId"),
}
_GOES_ON = {
    "TEXT_MESSAGE_CONTENT": ("text", "messageId"),
    "REASONING_MESSAGE_CONTENT": ("reasoning", "messageId"),
    "TOOL_CALL_ARGS": ("call", "toolCallId"),
}
_CLOSES = {
    "TEXT_MESSAGE_END": ("text", "messageId"),
    "REASONING_END": ("span", "messageId"),
    "REASONING_MESSAGE_END": ("reasoning", "messageId"),
    "TOOL_CALL_END": ("call", "toolCallId"),
    "STEP_FINISHED": ("step", "stepName"),
    "SUBAGENT_FINISHED": ("subagent", "subagentRunId"),
    "SUBAGENT_ERROR": ("subagent", "subagentRunId"),
}
TERMINAL = frozenset({"RUN_FINISHED", "RUN_ERROR"})
_OPEN = frozenset({"metadata", "snapshot", "value", "result", "responseSchema"})
"""Members that hold anything, null included; but `metadata` is an object itself, and no `result` is null."""
_NOT_NULL = frozenset({"metadata", "result"})


def told(frames: Iterable[Frame], *, legacy: bool = False) -> list[Told]:
    """The events as a client of that generation parses them."""
    chosen = [(f.legacy if legacy else f.current) if isinstance(f, Variants) else f for f in frames]
    return [json.loads(frame) for frame in chosen if frame is not None]


def check_order(events: Sequence[Told]) -> None:
    """One whole run: begins, ends once, and everything that was opened is closed in between."""
    assert events[0]["type"] == "RUN_STARTED"
    assert [event["type"] for event in events if event["type"] in TERMINAL] == [events[-1]["type"]]
    assert sum(event["type"] == "RUN_STARTED" for event in events) == 1
    is_open: set[tuple[str, str]] = set()
    agents: set[str] = set()
    for event in events:
        kind = event["type"]
        if kind in _OPENS:
            thing = _thing(_OPENS[kind], event)
            assert thing not in is_open, f"{thing} is opened twice"
            is_open.add(thing)
            if kind == "SUBAGENT_STARTED":
                assert thing[1] not in agents, f"{thing} comes again"
                agents.add(thing[1])
        elif kind in _GOES_ON:
            assert _thing(_GOES_ON[kind], event) in is_open, f"{event} goes on with nothing"
            assert event["delta"]
        elif kind == "MESSAGES_SNAPSHOT":
            assert not is_open, f"{is_open} would lose what is still to come"
        elif kind in _CLOSES:
            thing = _thing(_CLOSES[kind], event)
            assert thing in is_open, f"{thing} is closed without being open"
            is_open.remove(thing)
    assert not is_open, f"left open: {is_open}"


def check_shape(event: Told) -> None:
    """The event is the protocol's own: its library writes the same, and no optional member is null."""
    model = _EVENT.validate_python(event)
    assert json.loads(model.model_dump_json(by_alias=True)) == event
    assert type(event["timestamp"]) is int
    _no_nulls(event)


def _thing(spec: tuple[str, str], event: Told) -> tuple[str, str]:
    kind, key = spec
    return kind, event[key]


def _no_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key, member in value.items():  # pyright: ignore[reportUnknownVariableType]
            assert member is not None or key in _OPEN - _NOT_NULL, f"{key} is null"
            # The content of an activity is an object of the application's.
            if key not in _OPEN and not (key == "content" and isinstance(member, dict)):
                _no_nulls(member)
    elif isinstance(value, list):
        for member in value:  # pyright: ignore[reportUnknownVariableType]
            _no_nulls(member)
