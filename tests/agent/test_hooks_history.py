"""Whatever hooks, errors and stops do in a run, nothing that was said before it is touched."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.agent.agent import Agent
from app.agent.events import AgentEvent
from app.agent.hooks import Abort, HistoryContext, HookContext, Instead, ToolHookContext
from app.agent.limits import Limits
from app.agent.models.base import CallPiece, Finished, ModelError
from app.agent.models.scripted import CUT, ScriptedModel
from app.agent.pairing import unanswered_calls
from app.conversation.entries import CustomEntry, MessageEntry, TransientEntry
from app.conversation.messages import Injected, Message, StopReason, user_message
from app.conversation.views import model_view, stored_view

CALLS = [CallPiece("0", "{}", name="look", call_id="c"), CallPiece("1", "{", name="fail", call_id="d")]
REPLIES: list[Any] = [
    "said",
    CALLS,
    ["cut", CUT],
    ["half", ModelError("no")],
    [ValueError("no")],
    ["long", Finished(StopReason.LENGTH)],
]
DEEDS = ("nothing", "drop", "add", "record", "rewrite", "reuse", "spoil", "abort", "raise", "wrong")
ACTS = ("nothing", "answer", "empty", "spoil", "abort", "raise", "wrong")


def look() -> str:
    return "seen"


def fail() -> str:
    raise RuntimeError("no")


class Mischief:
    """A hook that does what it is told, one deed for each time it is asked."""

    def __init__(self, deeds: Sequence[str], injected: Injected) -> None:
        self._deeds = list(deeds)
        self._injected = injected

    def __call__(self, given: HistoryContext) -> Any:
        deed = self._deeds.pop(0) if self._deeds else "nothing"
        first = given.messages[0]
        match deed:
            case "drop":
                return given.messages[1:]
            case "add":
                return [user_message("added", injected=self._injected)]
            case "record":
                return [CustomEntry("note", 1, id=first.id), TransientEntry("note", 2)]
            case "rewrite":
                return [message.model_copy(update={"origin": "forger"}) for message in given.messages[:1]]
            case "reuse":
                return [user_message("other", id=first.id)]
            case "spoil":
                assert first.metadata is not None
                first.metadata.clear()
                return None
            case _:
                return in_vain(deed)


class Meddling:
    """The same for a hook before or after a model or a tool."""

    def __init__(self, deeds: Sequence[str]) -> None:
        self._deeds = list(deeds)

    def __call__(self, given: HookContext) -> Any:
        deed = self._deeds.pop(0) if self._deeds else "nothing"
        match deed:
            case "answer":
                return Instead("answered", is_error=True)
            case "empty":
                return Instead()
            case "spoil":
                if isinstance(given, ToolHookContext):
                    given.arguments["x"] = 1
                cast(list[int], given.state or [0]).clear()
                return None
            case _:
                return in_vain(deed)


def in_vain(deed: str) -> Any:
    match deed:
        case "abort":
            raise Abort("No.")
        case "raise":
            raise RuntimeError("no")
        case "wrong":
            return "text"
        case _:
            return None


def durable(messages: Sequence[Message]) -> list[str]:
    return [message.to_json() for message in model_view(stored_view(map(MessageEntry, messages)))]


shaping = st.lists(
    st.builds(Mischief, st.lists(st.sampled_from(DEEDS), max_size=3), st.sampled_from(list(Injected))),
    max_size=2,
)
meddling = st.lists(st.builds(Meddling, st.lists(st.sampled_from(ACTS), max_size=3)), max_size=2)


@pytest.mark.requirement("AGT-05", "AGT-06", "AGT-07")
@settings(max_examples=100, deadline=None)
@given(
    replies=st.lists(st.sampled_from(REPLIES), min_size=1, max_size=6),
    shapes=st.fixed_dictionaries(dict.fromkeys(("before_call", "after_turn", "before_stop"), shaping)),
    around=st.fixed_dictionaries(
        dict.fromkeys(("before_model", "after_model", "before_tool", "after_tool"), meddling)
    ),
    run_seconds=st.sampled_from([None, 0.0, 0.001]),
    leave_after=st.lists(st.none() | st.integers(1, 12), min_size=3, max_size=3),
)
def test_the_old_history_is_a_strict_prefix_of_the_new_one(
    replies: list[Any],
    shapes: dict[str, Any],
    around: dict[str, Any],
    run_seconds: float | None,
    leave_after: list[int | None],
) -> None:
    agent = Agent(
        "bot",
        model=ScriptedModel(replies),
        tools=[look, fail],
        limits=Limits(turns=4, retries=0, run_seconds=run_seconds),
        **shapes,
        **around,
    )
    asyncio.run(_three_turns(agent, leave_after))


async def _three_turns(agent: Agent, leave_after: Sequence[int | None]) -> None:
    for turn, events in enumerate(leave_after):
        await _turn(agent, turn, events)


async def _turn(agent: Agent, turn: int, leave_after: int | None) -> None:
    """One run, read to its end or left in the middle; looked at before every event."""
    old = [message.to_json() for message in agent.messages()]
    before = len(old)
    told: list[AgentEvent] = []
    run = agent.run(user_message(f"go {turn}", metadata={"n": turn}))
    async for event in run:
        new = [message.to_json() for message in agent.messages()]
        assert new[: len(old)] == old
        old = new
        told.append(event)
        if len(told) == leave_after:
            break
    await run.aclose()
    messages = agent.messages()
    assert [message.to_json() for message in messages][: len(old)] == old
    assert len(messages) > before
    assert len({message.id for message in messages}) == len(messages)
    assert durable(messages) == [message.to_json() for message in messages]
    if leave_after is None or len(told) < leave_after:
        assert unanswered_calls(messages[before:]) == []
