"""What an agent tells beside its messages: records, progress, the state, sub-agents; and its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from jsonpatch import JsonPatch  # pyright: ignore[reportMissingTypeStubs]
from pydantic import JsonValue

from app.agent.events import (
    AgentEvent,
    Appended,
    Snapshot,
    StateChanged,
    SubagentEnded,
    SubagentStarted,
    ToolProgress,
)
from app.conversation.blocks import ToolCall
from app.conversation.entries import CustomEntry, TransientEntry
from app.conversation.interrupts import ChildRun, Interrupt
from app.conversation.messages import Usage
from app.conversation.outcomes import EndReason, RunEnd

words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=8)
instants = st.none() | st.integers(0, 2**61)
values: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, 1, "text", [None, 2], {"a": None, "content": {"b": None}}]
)
_OBJECTS: list[dict[str, JsonValue] | None] = [None, {"type": "object", "default": None}]


def custom_entries(id: str) -> st.SearchStrategy[CustomEntry]:
    return st.builds(CustomEntry, words, values, instants, st.none() | words, st.just(id))


@st.composite
def run_ends(draw: st.DrawFn, reason: EndReason, calls: Sequence[ToolCall] = ()) -> RunEnd:
    """An end for this reason, while these calls are without a result."""
    asks, waits = reason is EndReason.INTERRUPTED, reason is EndReason.CLIENT_TOOLS
    return RunEnd(
        reason,
        RunEnd.by(reason).error,
        (("openai", "gpt", Usage(input_tokens=3)), (None, None, Usage())),
        interrupts=tuple(draw(interrupts(call.id)) for call in calls) if asks else (),
        pending_calls=tuple(call.id for call in calls) if waits else (),
        result=draw(values) if reason is EndReason.DONE else None,
    )


@st.composite
def interrupts(draw: st.DrawFn, call_id: str | None) -> Interrupt:
    return Interrupt(
        id=f"i-{call_id}",
        reason=draw(st.sampled_from(["tool_call", "input_required"])),
        message=draw(st.none() | words),
        call_id=call_id,
        response_schema=draw(st.sampled_from(_OBJECTS)),
        expires_at=draw(instants),
        metadata=draw(st.sampled_from(_OBJECTS)),
        child=draw(st.none() | st.just(ChildRun(thread_id="t2", run_id="r2"))),
        memory={"secret": "hush"},
    )


@dataclass
class State:
    """The shared state as it changes."""

    value: JsonValue

    def change(self, draw: st.DrawFn) -> StateChanged:
        patch: list[dict[str, JsonValue]] = draw(
            st.sampled_from(
                [
                    [{"op": "add", "path": "/n", "value": None}, {"op": "copy", "from": "/n", "path": "/m"}],
                    [{"op": "replace", "path": "", "value": {"whole": 1}}],
                    [{"op": "add", "path": "/a~1b", "value": {"deep": []}}],
                ]
            )
        )
        changed: Any = JsonPatch(patch).apply(self.value)  # pyright: ignore[reportUnknownMemberType]
        self.value = changed
        return StateChanged(patch, changed)


@st.composite
def doings(
    draw: st.DrawFn, call: ToolCall, state: State, *, records: bool
) -> tuple[list[AgentEvent], list[CustomEntry]]:
    """What a tool does on its way to a result, and what is stored of it."""
    kinds = ["progress", "state", "flash", "agent", *(["record"] if records else [])]
    events: list[AgentEvent] = []
    stored: list[CustomEntry] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=3))):
        id = f"{call.id}-{number}"
        if kind == "progress":
            total, message = draw(st.none() | st.just(1.5)), draw(st.just("") | words)
            events.append(ToolProgress(call.id, call.name, number + 1, 0.5, total, message))
        elif kind == "state":
            events.append(state.change(draw))
        elif kind == "record":
            stored.append(draw(custom_entries(f"{id}-e")))
            events.append(Appended(stored[-1]))
        elif kind == "flash":
            events.append(Appended(TransientEntry("flash", draw(values))))
        else:
            events.append(SubagentStarted(id, f"{id}-thread", "helper", draw(st.just("") | words), call.id))
            if draw(st.booleans()):
                reason = draw(st.sampled_from(EndReason))
                events.append(SubagentEnded(id, draw(run_ends(reason, [call]))))
    return events, stored


_ids = st.sampled_from(["x", "y"])
_patches: st.SearchStrategy[list[dict[str, JsonValue]]] = st.sampled_from(
    [
        [],
        [{"op": "add", "path": "", "value": 1}],
        [{"op": "remove", "path": "/none"}],
        [{"op": "add", "path": "no slash", "value": 1}],
        [{"op": "add", "path": "/a"}],
        [{"op": "beam"}],
    ]
)
unruly_doings = st.one_of(
    st.builds(ToolProgress, _ids, words, st.integers(0, 3), st.just(0.1)),
    st.builds(StateChanged, _patches, values),
    st.builds(SubagentStarted, _ids, _ids, words, st.just(""), _ids),
    st.builds(SubagentEnded, _ids, st.sampled_from(EndReason).flatmap(run_ends)),
    st.builds(Appended, _ids.flatmap(custom_entries)),
    st.builds(Appended, st.builds(TransientEntry, words, values)),
    st.builds(Snapshot, values, st.just(b"[]"), st.just(b"[]")),
)
"""The same of an agent that keeps no contract."""
