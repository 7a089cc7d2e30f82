"""Runs and the moments around them: claims in flight, callers that go away, and the end of the server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.limits import Limits
from app.agent.models.base import CallPiece
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tool_context import ToolContext
from app.agui.hydrate import WireRenderer, hydrate
from app.agui.translate import Translator
from app.clock import SystemClock, new_id
from app.conversation.entries import MessageEntry
from app.conversation.messages import user_message
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import StorageFailed
from app.runs import manager as manager_module
from app.runs.log_memory import LogShelf
from app.runs.manager import RunManager, ShuttingDown
from app.runs.order import LiveRun, Order
from app.store.adapter import RunRecord, Store, ThreadAttributes, ThreadQuery
from app.store.opening import open_store
from tests.services.waiting import eventually


class Held:
    """A store whose calls of one name wait for `gate`, or fail so many times."""

    def __init__(self, store: Store, name: str, failures: int = 0) -> None:
        self.store = store
        self.name = name
        self.failures = failures
        self.gate = asyncio.Event()
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.store, name)
        return self._held(real) if name == self.name else real

    def _held(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.asked += 1
            if self.failures:
                self.failures -= 1
                raise StorageFailed("refused")
            await self.gate.wait()
            return await real(*args, **kwargs)

        return call


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store("sqlite://", tmp_path)
    yield opened
    await opened.close()


def managing(store: object) -> RunManager:
    clock = SystemClock()
    return RunManager(
        store=cast(Store, store),
        shelf=LogShelf(300, 10**9, lambda: 0.0),
        clock=clock,
        translator=lambda: Translator(clock).translate,
        renderer=WireRenderer(),
        hydrate=hydrate,
    )


def order(reply: Reply, run_id: str = "r", thread_id: str = "t") -> Order:
    return Order(
        namespace="n",
        sender_id="user",
        thread_id=thread_id,
        run_id=run_id,
        agent=Agent("assistant", model=ScriptedModel([reply])),
        entries=[MessageEntry(user_message("hello"))],
        thread=ThreadAttributes("assistant", SystemClock().now(), new_id("conversation")),
    )


async def row(store: Store, run_id: str = "r") -> RunRecord:
    record = await store.get_run("n", "t", run_id)
    assert record is not None
    return record


async def told(run: LiveRun) -> bytes:
    return b"".join([piece async for piece in run.log.follow()])


@pytest.mark.requirement("LIVE-01")
async def test_a_caller_that_goes_away_during_the_claim_leaves_a_whole_run(store: Store) -> None:
    held = Held(store, "claim")
    runs = managing(held)
    starting = asyncio.create_task(runs.start(order("answer")))
    await eventually(lambda: held.asked == 1)
    starting.cancel()
    held.gate.set()
    await asyncio.wait({starting})

    async def completed() -> bool:
        record = await store.get_run("n", "t", "r")
        return record is not None and record.status is RunStatus.COMPLETED

    await eventually(completed)


async def test_a_stop_during_the_claim_stops_the_run_that_comes_of_it(store: Store) -> None:
    held = Held(store, "claim")
    runs = managing(held)
    starting = asyncio.create_task(runs.start(order(["so far", asyncio.Event(), "never"])))
    await eventually(lambda: held.asked == 1)
    stopping = asyncio.create_task(runs.stop("n", "r"))
    held.gate.set()
    await stopping
    await starting
    assert (await row(store)).status is RunStatus.STOPPED


@pytest.mark.requirement("LIVE-01")
async def test_whoever_looks_for_a_run_during_its_claim_finds_it(store: Store) -> None:
    held = Held(store, "claim")
    runs = managing(held)
    starting = asyncio.create_task(runs.start(order([asyncio.Event()])))
    await eventually(lambda: held.asked == 1)
    looking = asyncio.gather(runs.live("n", "t"), runs.log("n", "r"))
    held.gate.set()
    live, log = await looking
    run = await starting
    assert live is run
    assert log is run.log
    await runs.drain()


@pytest.mark.requirement("AGUI-01")
async def test_the_end_of_the_server_ends_every_run_and_takes_no_new_one(store: Store) -> None:
    runs = managing(store)
    run = await runs.start(order(["so far", asyncio.Event()]))
    await runs.drain()
    assert (await row(store)).end_reason == EndReason.SHUTDOWN
    assert b'"SHUTDOWN"' in await told(run)
    with pytest.raises(ShuttingDown):
        await runs.start(order("more", run_id="r2"))


@pytest.mark.requirement("AGUI-01")
async def test_a_claim_in_flight_when_the_server_ends_becomes_a_run_that_has_ended(store: Store) -> None:
    held = Held(store, "claim")
    runs = managing(held)
    starting = asyncio.create_task(runs.start(order(["so far", asyncio.Event()])))
    await eventually(lambda: held.asked == 1)
    draining = asyncio.create_task(runs.drain())
    held.gate.set()
    await draining
    assert (await row(store)).end_reason == EndReason.SHUTDOWN
    assert b'"SHUTDOWN"' in await told(await starting)


async def test_an_end_that_the_database_refused_is_stored_later_and_frees_the_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_module, "SETTLE_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr("app.runs.recorder.DELAYS", (0.0,))
    held = Held(store, "finish", failures=4)
    held.gate.set()
    runs = managing(held)
    run = await runs.start(order("answer"))
    assert b'"STORAGE_FAILED"' in await told(run)

    async def settled() -> bool:
        return (await row(store)).status is RunStatus.FAILED

    await eventually(settled)
    assert (await row(store)).end_reason == EndReason.STORAGE_FAILED
    again = await runs.start(order("second answer", run_id="r2"))
    assert b"RUN_FINISHED" in await told(again)
    await runs.drain()


@pytest.mark.requirement("AGUI-01")
async def test_a_history_that_cannot_be_read_ends_the_run_with_an_error(store: Store) -> None:
    runs = managing(store)
    await told(await runs.start(order("one", run_id="r1")))
    held = Held(store, "recall", failures=1)
    run = await managing(held).start(order("two"))
    assert b'"STORAGE_FAILED"' in await told(run)
    assert (await row(store)).status is RunStatus.FAILED


@pytest.mark.requirement("AGT-16")
async def test_a_stop_while_another_agents_run_is_claimed_stops_the_run_that_comes_of_it(
    store: Store,
) -> None:
    held = Held(store, "claim")
    held.gate.set()
    runs = managing(held)
    below = ScriptedModel([["so far", asyncio.Event(), "never"]])
    bank = Agent("bank", model=below)

    async def ask(context: ToolContext) -> str:
        held.gate.clear()
        return await context.run_agent(bank, "pay")

    model = ScriptedModel([[CallPiece("0", "{}", name="ask", call_id="c")]])
    desk = Agent("assistant", model=model, tools=[ask], limits=Limits(grace_seconds=0.05))
    live = await runs.start(replace(order("unused"), agent=desk))
    await eventually(lambda: held.asked == 2)
    live.stop.request(EndReason.REPLACED)
    await asyncio.wait({live.task})
    held.gate.set()

    async def stopped() -> bool:
        page = await store.list_threads("n", ThreadQuery(include_hidden=True, parent_thread_id="t"))
        return [thread.last_run_status for thread in page.threads] == [RunStatus.STOPPED]

    await eventually(stopped)
    await runs.drain()
