"""What a tool may do in its run: change the shared state, tell how far it is, remind, record."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.agent.agent import Agent
from app.agent.events import AgentEvent, Appended, StateChanged, ToolDone, ToolProgress
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolContext, ToolLike
from app.conversation.blocks import Reminder
from app.conversation.entries import CustomEntry, TransientEntry
from app.conversation.messages import Message
from app.conversation.views import for_reader
from tests.agent.running import QUICK, bounded, context


def call(name: str, id: str = "c1") -> CallPiece:
    return CallPiece(id, "{}", name=name, call_id=id)


async def ran(*tools: ToolLike, state: Any = None) -> tuple[list[AgentEvent], ScriptedModel]:
    """Each tool is called in an answer of its own, in order."""
    names = [getattr(one, "__name__", "") for one in tools]
    model = ScriptedModel([*([call(name, name)] for name in names), "end"])
    agent = Agent("bot", model=model, tools=tools, limits=QUICK)
    run = replace(context("go"), state=state)
    return [event async for event in bounded(agent.respond(run))], model


def results(events: Sequence[AgentEvent]) -> list[Message]:
    return [event.message for event in events if isinstance(event, ToolDone)]


@pytest.mark.requirement("AGT-14", "AGUI-18")
async def test_a_tool_patches_the_state_and_the_next_one_sees_it() -> None:
    async def first(context: ToolContext) -> str:
        context.patch_state([{"op": "add", "path": "/n", "value": 1}])
        context.patch_state([{"op": "replace", "path": "/n", "value": 2}])
        return "ok"

    def second(context: ToolContext) -> object:
        return context.state

    events, _ = await ran(first, second, state={"page": 3})
    changes = [event for event in events if isinstance(event, StateChanged)]
    assert [change.state for change in changes] == [{"page": 3, "n": 1}, {"page": 3, "n": 2}]
    assert changes[0].patch == [{"op": "add", "path": "/n", "value": 1}]
    assert results(events)[1].join_text() == '{"page":3,"n":2}'
    assert events.index(changes[1]) < next(at for at, e in enumerate(events) if isinstance(e, ToolDone))


@pytest.mark.requirement("AGT-14")
@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/missing"}],
        [{"op": "test", "path": "/page", "value": 4}],
        [{"op": "add", "path": "page", "value": 1}],
        [{"op": "jump", "path": "/page"}],
        [{"op": "add", "path": "/x"}],
        [{"op": "add", "path": "/x", "value": 10**30}],
        [{"op": "add", "path": "/x", "value": "y" * 2_000_000}],
        ["nonsense"],
        {"op": "add"},
    ],
)
async def test_a_patch_that_does_not_fit_changes_nothing_and_the_model_is_told(patch: Any) -> None:
    def spoil(context: ToolContext) -> str:
        context.patch_state(patch)
        return "changed"

    def look(context: ToolContext) -> object:
        return context.state

    events, _ = await ran(spoil, look, state={"page": 3})
    assert not any(isinstance(event, StateChanged) for event in events)
    spoiled, looked = results(events)
    assert spoiled.is_error
    assert "shared state was not changed" in spoiled.join_text()
    assert looked.join_text() == '{"page":3}'


async def test_values_that_no_wire_can_carry_are_made_fit_for_it() -> None:
    def put(context: ToolContext) -> str:
        context.patch_state([{"op": "add", "path": "/x", "value": [float("nan"), "a\x00\ud800"]}])
        return "ok"

    events, _ = await ran(put, state={})
    (change,) = [event for event in events if isinstance(event, StateChanged)]
    assert change.state == {"x": [None, "a\ufffd\ufffd"]}


@pytest.mark.requirement("AGT-14")
async def test_progress_is_counted_and_told_before_the_result() -> None:
    def work(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        context.progress(2, 2)
        return "done"

    events, _ = await ran(work)
    told = [event for event in events if isinstance(event, ToolProgress)]
    assert [(one.sequence, one.progress, one.total, one.message) for one in told] == [
        (1, 1, 2, "half"),
        (2, 2, 2, ""),
    ]
    at = next(at for at, event in enumerate(events) if isinstance(event, ToolDone))
    assert events.index(told[1]) < at


@pytest.mark.requirement("AGT-14")
async def test_changes_from_many_threads_are_told_in_the_order_in_which_they_were_made() -> None:
    def work(context: ToolContext) -> str:
        def some() -> None:
            for _ in range(20):
                context.patch_state([{"op": "add", "path": "/done/-", "value": 1}])

        threads = [threading.Thread(target=some) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "done"

    events, _ = await ran(work, state={"done": []})
    states = [event.state for event in events if isinstance(event, StateChanged)]
    assert states == [{"done": [1] * count} for count in range(1, 81)]


@pytest.mark.parametrize("progress", [float("nan"), float("-inf"), 10**400, "half", True])
async def test_progress_that_is_no_number_is_the_tools_own_failure(progress: Any) -> None:
    def work(context: ToolContext) -> str:
        context.progress(1, progress)
        return "done"

    events, _ = await ran(work)
    assert results(events)[0].is_error
    assert not any(isinstance(event, ToolProgress) for event in events)


@pytest.mark.requirement("AGT-10", "AGT-14")
async def test_a_reminder_rides_in_the_result_for_the_model_alone() -> None:
    def weigh(context: ToolContext) -> str:
        context.remind("The scale is old.", origin="lab")
        return "70 kg"

    events, model = await ran(weigh)
    (result,) = results(events)
    assert result.content[-1] == Reminder(text="The scale is old.", origin="lab")
    assert for_reader(result).join_text() == "70 kg"
    assert "The scale is old." in model.prompts[1].messages[-1].join_text()


@pytest.mark.requirement("AGT-11", "AGT-12")
async def test_a_tool_records_what_no_model_reads() -> None:
    async def sell(context: ToolContext) -> str:
        context.record("invoice", {"total": 7})
        context.record("blink", 1, transient=True)
        return "sold"

    events, model = await ran(sell)
    kept, gone = [event.entry for event in events if isinstance(event, Appended)]
    assert isinstance(kept, CustomEntry)
    assert (kept.name, kept.value, kept.sender_id) == ("invoice", {"total": 7}, "bot")
    assert isinstance(gone, TransientEntry)
    assert all("invoice" not in message.to_json() for message in model.prompts[1].messages)


@pytest.mark.parametrize(("name", "value"), [("", 1), ("x" * 201, 1), ("ok", object()), ("ok", 10**30)])
async def test_a_record_that_is_none_is_the_tools_own_failure(name: str, value: Any) -> None:
    def sell(context: ToolContext) -> str:
        context.record(name, value)
        return "sold"

    events, _ = await ran(sell)
    assert results(events)[0].is_error
    assert not any(isinstance(event, Appended) for event in events)


async def test_a_context_is_over_with_its_call() -> None:
    held: list[ToolContext] = []

    def keep(context: ToolContext) -> str:
        held.append(context)
        return "ok"

    await ran(keep)
    (late,) = held
    uses: list[Callable[[], object]] = [
        lambda: late.progress(1),
        lambda: late.patch_state([{"op": "add", "path": "/x", "value": 1}]),
        lambda: late.remind("too late"),
        lambda: late.record("invoice", 1),
        lambda: late.ask("Where?"),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="over"):
            use()
