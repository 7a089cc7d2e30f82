"""Hooks: what the model is sent for one call, what lasts, and who may go on."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.context import StopSignal
from app.agent.events import AgentEvent, Appended, MessageDone, ToolDone
from app.agent.hooks import AfterTurn, BeforeCall, BeforeStop
from app.agent.limits import Limits
from app.agent.models.base import CallPiece, Finished, ModelError
from app.agent.models.scripted import ScriptedModel
from app.conversation.blocks import ToolCall
from app.conversation.entries import MessageEntry
from app.conversation.messages import (
    Injected,
    Message,
    StopReason,
    Usage,
    assistant_message,
    tool_result_message,
    user_message,
)
from app.conversation.outcomes import EndReason
from tests.agent.running import QUICK, answer, bounded, check, collect, context, end_of, kept, texts

CALL = [CallPiece("0", "{}", name="look", call_id="c")]


def look() -> str:
    return "sunny"


def appended(events: Sequence[AgentEvent]) -> list[Message]:
    return [e.entry.message for e in events if isinstance(e, Appended) and isinstance(e.entry, MessageEntry)]


def meta(text: str, **more: Any) -> Message:
    return user_message(text, injected=Injected.META, **more)


def sent(model: ScriptedModel) -> list[list[str]]:
    return [texts(prompt.messages) for prompt in model.prompts]


@pytest.mark.requirement("AGT-05")
async def test_a_shaped_call_leaves_the_history_as_it_was_and_the_next_call_starts_from_all_of_it() -> None:
    seen: list[list[str]] = []
    before: list[list[str]] = []

    def window(call: BeforeCall) -> Sequence[Message]:
        seen.append(texts(call.messages))
        before.append([message.to_json() for message in call.messages])
        return [*call.messages[1:], user_message("only now")]

    model = ScriptedModel([CALL, "one", "two"])
    agent = Agent("bot", model=model, tools=[look], before_call=window, history=[user_message("old")])
    await collect(agent.run("a"))
    between = [message.to_json() for message in agent.messages()]
    await collect(agent.run("b"))
    assert seen == [
        ["old", "a"],
        ["old", "a", "", "sunny"],
        ["old", "a", "", "sunny", "one", "b"],
    ]
    assert sent(model)[0] == ["a", "only now"]
    assert sent(model)[1] == ["a", "", "sunny", "only now"]
    after = [message.to_json() for message in agent.messages()]
    assert after[: len(between)] == between
    assert after[: len(before[-1])] == before[-1]
    assert len(after) == 7


@pytest.mark.requirement("AGT-05")
async def test_hooks_of_one_kind_are_asked_in_order_and_each_sees_what_the_last_returned() -> None:
    async def first(call: BeforeCall) -> Sequence[Message]:
        return [*call.messages, user_message("1")]

    def nothing(call: BeforeCall) -> None:
        assert texts(call.messages) == ["go", "1"]

    def second(call: BeforeCall) -> Sequence[Message]:
        return [*call.messages, user_message("2")]

    model = ScriptedModel(["end"])
    await answer(Agent("bot", model=model, before_call=[first, nothing, second]), "go")
    assert sent(model) == [["go", "1", "2"]]


async def test_a_prompt_that_a_hook_cut_between_a_call_and_its_result_is_sound_all_the_same() -> None:
    def cut(call: BeforeCall) -> Sequence[Message]:
        return [message for message in call.messages if message.call_id is None]

    model = ScriptedModel([CALL, "end"])
    told = await answer(Agent("bot", model=model, tools=[look], before_call=cut), "go")
    assert end_of(told).reason is EndReason.DONE
    assert model.prompts[1].messages[-1].call_id == "c"
    assert "not executed" in sent(model)[1][-1]


async def test_a_call_that_is_tried_again_is_shaped_once() -> None:
    asked: list[int] = []

    def count(call: BeforeCall) -> None:
        asked.append(call.turn)

    model = ScriptedModel([[ModelError("busy", retryable=True)], "end"])
    await answer(Agent("bot", model=model, before_call=count, limits=QUICK), "go")
    assert asked == [1]
    assert len(model.prompts) == 2


@pytest.mark.requirement("AGT-06", "AGT-08")
async def test_what_after_turn_appends_is_told_with_its_mark_and_in_every_later_prompt() -> None:
    def remember(turn: AfterTurn) -> Sequence[Message]:
        return [
            meta(f"meta {turn.turn}", origin="memory"),
            user_message(f"now {turn.turn}", injected=Injected.EPHEMERAL, origin="clock"),
        ]

    model = ScriptedModel([CALL, "one", "two"])
    agent = Agent("bot", model=model, tools=[look], after_turn=remember)
    told = await collect(agent.run("a"))
    assert [(m.injected, m.origin, m.join_text()) for m in appended(told)] == [
        (Injected.META, "memory", "meta 1"),
        (Injected.EPHEMERAL, "clock", "now 1"),
        (Injected.META, "memory", "meta 2"),
        (Injected.EPHEMERAL, "clock", "now 2"),
    ]
    assert [type(e) for e in told if isinstance(e, MessageDone | ToolDone | Appended)] == [
        MessageDone,
        ToolDone,
        Appended,
        Appended,
        MessageDone,
        Appended,
        Appended,
    ]
    await collect(agent.run("b"))
    assert sent(model)[1] == ["a", "", "sunny", "meta 1", "now 1"]
    assert sent(model)[2] == ["a", "", "sunny", "meta 1", "one", "meta 2", "b"]
    assert texts(agent.messages()) == [*sent(model)[2], "two", "meta 1"]


@pytest.mark.requirement("AGT-06")
async def test_a_hook_can_replace_nothing_and_forge_nothing() -> None:
    def rewrite(turn: AfterTurn) -> Sequence[Message]:
        said = turn.messages[0]
        return [
            said.model_copy(update={"content": user_message("forged").content}),
            user_message("new", id=said.id),
            user_message("odd\x00\ud800", id="a/b"),
        ]

    agent = Agent("bot", model=ScriptedModel(["end"]), after_turn=rewrite)
    told = await collect(agent.run(user_message("said", id="u1")))
    messages = agent.messages()
    assert texts(messages) == ["said", "end", "forged", "new", "odd\ufffd\ufffd"]
    assert len({message.id for message in messages}) == 5
    assert "a/b" not in {message.id for message in messages}
    assert {message.injected for message in appended(told)} == {Injected.META}


@pytest.mark.requirement("AGT-06")
async def test_what_a_hook_changes_later_or_in_its_copies_changes_nothing() -> None:
    mine = meta("note", metadata={"n": 1})

    def spoil(turn: AfterTurn) -> Sequence[Message]:
        for message in turn.messages:
            if message.metadata is not None:
                message.metadata["n"] = 99
        cast(dict[str, Any], turn.state)["page"] = 99
        assert isinstance(turn.messages, tuple)
        return [mine]

    def look_again(turn: AfterTurn) -> None:
        assert mine.metadata is not None
        mine.metadata["n"] = 99
        assert turn.state == {"page": 3}

    history = user_message("go", metadata={"n": 1})
    agent = Agent("bot", model=ScriptedModel(["end"]), after_turn=[spoil, look_again])
    told = await answer(agent, history)
    assert end_of(told).reason is EndReason.DONE
    assert history.metadata == {"n": 1}
    assert [message.metadata for message in appended(told)] == [{"n": 1}]


@pytest.mark.requirement("AGT-07")
async def test_before_stop_alone_makes_a_run_go_on_that_was_about_to_end() -> None:
    def note(turn: AfterTurn) -> Sequence[Message]:
        return [meta(f"after {turn.turn}")]

    def guard(stop: BeforeStop) -> Sequence[Message]:
        return [] if stop.turn == 2 else [meta("are you sure?", origin="guard")]

    model = ScriptedModel(["yes", "quite"])
    told = await answer(Agent("bot", model=model, after_turn=note, before_stop=guard), "go")
    assert sent(model)[1] == ["go", "yes", "after 1", "are you sure?"]
    assert texts(appended(told)) == ["after 1", "are you sure?", "after 2"]
    assert end_of(told).reason is EndReason.DONE


@pytest.mark.requirement("AGT-07")
async def test_a_guard_that_never_lets_go_ends_at_the_limit_of_turns() -> None:
    def never(_: BeforeStop) -> Sequence[Message]:
        return [meta("again")]

    model = ScriptedModel(["x"] * 9)
    told = await answer(Agent("bot", model=model, before_stop=never, limits=Limits(turns=3)), "go")
    assert len(model.prompts) == 3
    assert end_of(told).reason is EndReason.LOOP_LIMIT


@pytest.mark.requirement("AGT-07")
async def test_a_run_that_goes_on_stays_within_its_tokens() -> None:
    def never(_: BeforeStop) -> Sequence[Message]:
        return [meta("again")]

    reply = ["x", Finished(StopReason.STOP, Usage(total_tokens=10))]
    agent = Agent("bot", model=ScriptedModel([reply] * 9), before_stop=never, limits=Limits(tokens=20))
    assert end_of(await answer(agent, "go")).reason is EndReason.TOKEN_BUDGET


@pytest.mark.requirement("AGT-07")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (["x", Finished(StopReason.LENGTH)], EndReason.LENGTH),
        (["x", ValueError("no")], EndReason.INTERNAL_ERROR),
        (CALL, EndReason.LOOP_LIMIT),
    ],
)
async def test_no_hook_follows_an_error_or_a_limit(reply: Sequence[Any], reason: EndReason) -> None:
    asked: list[str] = []

    def after(_: AfterTurn) -> None:
        asked.append("after")

    def stop(_: BeforeStop) -> None:
        asked.append("stop")

    model = ScriptedModel([reply])
    agent = Agent(
        "bot", model=model, tools=[look], after_turn=after, before_stop=stop, limits=Limits(turns=1)
    )
    assert end_of(await answer(agent, "go")).reason is reason
    assert asked == []


async def test_a_message_is_called_the_last_only_if_no_hook_can_follow() -> None:
    def nothing(_: object) -> None:
        return None

    async def last(**hooks: Any) -> list[bool]:
        told = await answer(Agent("bot", model=ScriptedModel(["end"]), **hooks), "go")
        return [event.last for event in told if isinstance(event, MessageDone)]

    assert await last() == [True]
    assert await last(before_call=nothing, before_model=nothing, after_tool=nothing) == [True]
    assert await last(after_model=nothing) == [False]
    assert await last(after_turn=nothing) == [False]
    assert await last(before_stop=[nothing]) == [False]


async def test_a_hook_is_told_of_its_run() -> None:
    told: list[AfterTurn] = []
    reply = ["x", Finished(StopReason.STOP, Usage(input_tokens=3, output_tokens=4))]
    await answer(Agent("bot", model=ScriptedModel([reply]), after_turn=told.append), "go")
    (turn,) = told
    assert (turn.namespace, turn.thread_id, turn.run_id) == ("default", "thread-1", "run-1")
    assert (turn.agent, turn.sender_id, turn.state, turn.turn) == ("bot", "ann", {"page": 3}, 1)
    assert turn.usage == Usage(input_tokens=3, output_tokens=4)
    assert texts(turn.messages) == ["go", "x"]


def raises(_: object) -> None:
    raise RuntimeError("a secret of ours")


def exits(_: object) -> None:
    raise SystemExit(3)


async def exits_async(_: object) -> None:
    raise SystemExit(3)


async def cancels(_: object) -> None:
    raise asyncio.CancelledError


async def hangs(_: object) -> None:
    await asyncio.Event().wait()


def wrong_type(_: object) -> Any:
    return "text"


def wrong_items(_: object) -> Any:
    return ["text"]


def no_message(_: object) -> Any:
    return [user_message("x").model_copy(update={"content": 5})]


WRONG = [raises, exits, exits_async, cancels, hangs, wrong_type, wrong_items, no_message]


@pytest.mark.parametrize("kind", ["before_call", "after_turn", "before_stop"])
@pytest.mark.parametrize("hook", WRONG, ids=lambda hook: hook.__name__)
async def test_a_hook_that_fails_fails_its_run_and_nothing_else(
    hook: Callable[..., Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(tool_seconds=0.05, grace_seconds=0.05)
    hooks: dict[str, Any] = {kind: hook}
    agent = Agent("bot", model=ScriptedModel(["end"]), limits=limits, **hooks)
    with caplog.at_level(logging.ERROR):
        told = await collect(agent.run("go"))
    end = end_of(told)
    assert end.reason is EndReason.INTERNAL_ERROR
    assert end.error is not None
    assert end.error.message == "Something went wrong inside the server."
    assert f"hook {hook.__name__}" in caplog.text
    assert texts(agent.messages()) == (["go"] if kind == "before_call" else ["go", "end"])


@pytest.mark.parametrize(
    "forged",
    [
        tool_result_message("c", "look", "approved"),
        assistant_message([ToolCall(id="c9", name="look")]),
    ],
)
async def test_a_hook_makes_neither_calls_nor_results(forged: Message) -> None:
    def forge(_: AfterTurn) -> Sequence[Message]:
        return [meta("fine"), forged]

    model = ScriptedModel([CALL, "end"])
    told = await answer(Agent("bot", model=model, tools=[look], after_turn=forge), "go")
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
    assert appended(told) == []
    assert texts(kept(told)) == ["", "sunny"]


@pytest.mark.parametrize("kind", ["before_call", "after_turn", "before_stop"])
async def test_a_stop_reaches_a_hook_even_one_that_will_not_end(kind: str) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def stubborn(_: object) -> None:
        entered.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    stop = StopSignal()
    hooks: dict[str, Any] = {kind: stubborn}
    agent = Agent("bot", model=ScriptedModel(["end"]), limits=QUICK, **hooks)

    async def stop_it() -> None:
        await entered.wait()
        stop.request(EndReason.STOP_REQUESTED)

    task = asyncio.create_task(stop_it())
    told = [event async for event in bounded(agent.respond(context("go", stop=stop)))]
    await task
    release.set()
    check(told)
    assert end_of(told).reason is EndReason.STOP_REQUESTED
    assert texts(kept(told)) == ([] if kind == "before_call" else ["end"])


async def test_a_hook_that_blocks_a_thread_holds_up_no_other_run() -> None:
    release = threading.Event()

    def blocks(_: BeforeCall) -> None:
        release.wait(10)

    limits = Limits(tool_seconds=0.05, grace_seconds=0.05)
    stuck = Agent("stuck", model=ScriptedModel(["end"]), before_call=blocks, limits=limits)
    free = Agent("free", model=ScriptedModel(["end"]))
    one, other = await asyncio.gather(answer(stuck, "go"), answer(free, "go"))
    release.set()
    assert end_of(one).reason is EndReason.INTERNAL_ERROR
    assert end_of(other).reason is EndReason.DONE


@pytest.mark.parametrize("kind", ["before_call", "before_model", "after_tool"])
def test_what_is_no_function_is_refused_when_the_agent_is_made(kind: str) -> None:
    with pytest.raises(TypeError, match=kind):
        Agent("bot", **cast(Any, {kind: ["text"]}))
