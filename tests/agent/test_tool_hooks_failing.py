"""Hooks around a tool that end the run, fail, or are overtaken by a stop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.context import StopSignal
from app.agent.hooks import Abort, AfterTool, BeforeTool, Instead
from app.agent.limits import Limits
from app.agent.models.scripted import ScriptedModel
from app.conversation.blocks import Text
from app.conversation.messages import Role
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.hooked import Log, call, listed, pay_into, paying, results
from tests.agent.running import QUICK, check, collect, context, end_of, kept, texts


@pytest.mark.parametrize("kind", ["before_tool", "after_tool"])
async def test_an_abort_ends_the_run_with_public_words_and_every_call_has_a_result(kind: str) -> None:
    log: Log = []
    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            log.append("slow was cancelled")

    async def refuse(given: BeforeTool | AfterTool) -> None:
        if given.name == "pay":
            await started.wait()
            raise Abort("Payments are closed.")

    def later(given: BeforeTool | AfterTool) -> None:
        log.append(f"later {given.name}")

    hooks: dict[str, Any] = {kind: [refuse, later]}
    model = ScriptedModel([[call("pay", "c", '{"amount": 5}'), call("slow", "d")], "end"])
    agent = Agent("bot", model=model, tools=[pay_into(log), slow], limits=QUICK, **hooks)
    told = await collect(agent.run("go"))
    end = end_of(told)
    assert (end.reason, end.status) == (EndReason.HOOK_ABORTED, RunStatus.FAILED)
    assert end.error is not None
    assert end.error.message == "Payments are closed."
    assert [result.is_error for result in results(told)] == [True, True]
    assert ("paid 5" in log) == (kind == "after_tool")
    assert "slow was cancelled" in log
    assert "later pay" not in log
    assert len(model.prompts) == 1
    assert "paid 5" not in texts(agent.messages())


def raises(_: object) -> Any:
    raise RuntimeError("a secret of ours")


def exits(_: object) -> Any:
    raise SystemExit(3)


async def cancels(_: object) -> Any:
    raise asyncio.CancelledError


async def hangs(_: object) -> None:
    await asyncio.Event().wait()


def bare(_: object) -> Any:
    return "text"


def no_json(_: object) -> Any:
    return Instead(cast(Any, object()))


def no_block(_: object) -> Any:
    return Instead([Text(text="x").model_copy(update={"text": 5})])


@pytest.mark.parametrize("kind", ["before_tool", "after_tool"])
@pytest.mark.parametrize("hook", [raises, exits, cancels, hangs, bare, no_json, no_block])
async def test_a_tool_hook_that_fails_fails_its_run(
    hook: Callable[..., Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    log: Log = []
    hooks: dict[str, Any] = {kind: hook}
    limits = Limits(tool_seconds=0.05, grace_seconds=0.05)
    with caplog.at_level(logging.ERROR):
        told = await collect(paying(log, limits=limits, **hooks).run("go"))
    end = end_of(told)
    assert end.reason is EndReason.INTERNAL_ERROR
    assert end.error is not None
    assert "secret" not in end.error.message
    assert f"hook {hook.__name__}" in caplog.text
    assert log == ([] if kind == "before_tool" else ["paid 5"])
    (result,) = results(told)
    assert result.is_error
    assert "paid" not in result.join_text()


async def test_a_result_that_a_hook_had_no_time_to_look_at_is_not_shown_when_a_stop_comes() -> None:
    looking = asyncio.Event()

    async def censor(_: AfterTool) -> Instead:
        looking.set()
        await asyncio.Event().wait()
        return Instead("***")

    await stopped_while(looking, paying([], after_tool=censor), "paid 5", "no result")


@pytest.mark.parametrize(("hangs", "shown"), [(False, "*** was paid"), (True, "no result")])
async def test_a_result_that_a_tool_brings_home_when_it_is_stopped_is_looked_at_or_not_shown(
    hangs: bool, shown: str
) -> None:
    working = asyncio.Event()

    async def pay(amount: int) -> str:
        working.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return f"paid {amount}"
        return ""

    async def censor(_: AfterTool) -> Instead:
        if hangs:
            await asyncio.Event().wait()
        return Instead("*** was paid")

    model = ScriptedModel([[call("pay", "c", '{"amount": 5}')], "end"])
    agent = Agent("bot", model=model, tools=[pay], limits=QUICK, after_tool=censor)
    await stopped_while(working, agent, "paid 5", shown)


async def test_a_stop_reaches_a_hook_before_a_tool_and_the_tool_does_not_run() -> None:
    log: Log = []
    asked = asyncio.Event()

    async def waits(_: BeforeTool) -> None:
        asked.set()
        await asyncio.Event().wait()

    await stopped_while(asked, paying(log, before_tool=waits), "paid 5", "no result")
    assert log == []


async def stopped_while(event: asyncio.Event, agent: Agent, hidden: str, shown: str) -> None:
    """Asks for a stop once the event is set; `hidden` must not be in what is kept, and `shown` must."""
    stop = StopSignal()

    async def stop_it() -> None:
        await event.wait()
        stop.request(EndReason.STOP_REQUESTED)

    task = asyncio.create_task(stop_it())
    told = await listed(agent.respond(context("go", stop=stop)))
    await task
    check(told)
    assert end_of(told).reason is EndReason.STOP_REQUESTED
    (result,) = [message for message in kept(told) if message.role is Role.TOOL_RESULT]
    assert result.join_text() != hidden
    assert shown in result.join_text()
