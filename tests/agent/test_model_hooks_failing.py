"""Hooks before and after a model that end the run, fail, or are overtaken by a stop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from app.agent.agent import Agent
from app.agent.context import StopSignal
from app.agent.events import Appended, RunDone, StepStarted
from app.agent.hooks import (
    Abort,
    AfterModel,
    BeforeModel,
    Instead,
)
from app.agent.limits import Limits
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.conversation.blocks import Image, ToolCall, UrlSource
from app.conversation.messages import Injected, user_message
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.hooked import Diary
from tests.agent.running import QUICK, answer, bounded, check, collect, context, end_of, kept, texts

SENTENCE = "The run was refused by a rule of this server."


async def test_an_abort_before_the_model_ends_the_run_with_public_words_and_no_call() -> None:
    later = Diary()

    def refuse(_: BeforeModel) -> None:
        raise Abort("Your quota\x00 is used up.")

    model = ScriptedModel(["never"])
    agent = Agent("bot", model=model, before_model=[refuse, later], after_model=later)
    told = await collect(agent.run("go"))
    end = end_of(told)
    assert (end.reason, end.status) == (EndReason.HOOK_ABORTED, RunStatus.FAILED)
    assert end.error is not None
    assert (end.error.code, end.error.message) == ("HOOK_ABORTED", "Your quota\ufffd is used up.")
    assert model.prompts == []
    assert later.notes == []
    assert texts(agent.messages()) == ["go"]


async def test_an_abort_behind_an_answer_keeps_it_and_runs_none_of_its_calls() -> None:
    ran: list[str] = []

    def act() -> None:
        ran.append("act")

    def refuse(given: AfterModel) -> None:
        assert given.message is not None
        if given.message.tool_calls():
            raise Abort("No tools today.")

    said = ["thinking aloud", CallPiece("0", "{}", name="act", call_id="c")]
    told = await answer(Agent("bot", model=ScriptedModel([said, "x"]), tools=[act], after_model=refuse), "go")
    assert end_of(told).reason is EndReason.HOOK_ABORTED
    answered, result = kept(told)
    assert answered.join_text() == "thinking aloud"
    assert (result.call_id, result.is_error) == ("c", True)
    assert ran == []


@pytest.mark.parametrize("kind", ["before_call", "before_model", "after_model", "after_turn", "before_stop"])
@pytest.mark.parametrize(("words", "told"), [("Not now.", "Not now."), ("", SENTENCE), (" \n", SENTENCE)])
async def test_any_hook_may_end_its_run(kind: str, words: str, told: str) -> None:
    def refuse(_: object) -> None:
        raise Abort(words)

    hooks: dict[str, Any] = {kind: refuse}
    agent = Agent("bot", model=ScriptedModel(["end"]), **hooks)
    end = end_of(await collect(agent.run("go")))
    assert end.reason is EndReason.HOOK_ABORTED
    assert end.error is not None
    assert end.error.message == told
    assert texts(agent.messages()) == (["go"] if kind in ("before_call", "before_model") else ["go", "end"])


def forged(_: object) -> Any:
    return Instead([ToolCall(id="c", name="look")])


def picture(_: object) -> Any:
    return Instead([Image(source=UrlSource(value="https://example.org/x.png"))])


def number(_: object) -> Any:
    return Instead(5)


def bare(_: object) -> Any:
    return "text"


def messages(_: object) -> Any:
    return [user_message("x", injected=Injected.META)]


def raises(_: object) -> Any:
    raise RuntimeError("a secret of ours")


async def hangs(_: object) -> None:
    await asyncio.Event().wait()


def replaces(_: object) -> Any:
    return Instead("other words")


BEFORE = [forged, picture, number, bare, messages, raises, hangs]
AFTER = [replaces, bare, messages, raises, hangs]


@pytest.mark.parametrize(
    ("kind", "hook"),
    [*(("before_model", hook) for hook in BEFORE), *(("after_model", hook) for hook in AFTER)],
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
async def test_a_model_hook_that_fails_fails_its_run(
    kind: str, hook: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(tool_seconds=0.05, grace_seconds=0.05)
    hooks: dict[str, Any] = {kind: hook}
    model = ScriptedModel(["end"])
    agent = Agent("bot", model=model, limits=limits, **hooks)
    with caplog.at_level(logging.ERROR):
        told = await collect(agent.run("go"))
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
    assert f"hook {hook.__name__}" in caplog.text
    assert texts(agent.messages()) == (["go"] if kind == "before_model" else ["go", "end"])
    assert [type(event) for event in told if isinstance(event, Appended)] == []


@pytest.mark.parametrize("kind", ["before_model", "after_model"])
async def test_a_stop_reaches_a_model_hook(kind: str) -> None:
    entered = asyncio.Event()

    async def waits(_: object) -> None:
        entered.set()
        await asyncio.Event().wait()

    stop = StopSignal()
    hooks: dict[str, Any] = {kind: waits}
    agent = Agent("bot", model=ScriptedModel(["end"]), limits=QUICK, **hooks)

    async def stop_it() -> None:
        await entered.wait()
        stop.request(EndReason.STOP_REQUESTED)

    task = asyncio.create_task(stop_it())
    told = [event async for event in bounded(agent.respond(context("go", stop=stop)))]
    await task
    check(told)
    assert isinstance(told[0], StepStarted)
    assert isinstance(told[-1], RunDone)
    assert end_of(told).reason is EndReason.STOP_REQUESTED
    assert texts(kept(told)) == ([] if kind == "before_model" else ["end"])
