"""Requests whose thread goes on between their reading and their claim."""

from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.models.scripted import ScriptedModel
from app.agui.hydrate import WireRenderer, hydrate
from app.agui.input import read_run_input
from app.agui.translate import Translator
from app.api.deps import Principal, Services
from app.api.turns import Outcome, Started, take_request
from app.clock import SystemClock
from app.errors import HeadMoved
from app.runs.log_memory import LogShelf
from app.runs.manager import RunManager
from app.settings import Settings
from app.store.adapter import HeadRecord, Store
from app.store.opening import open_store

PRINCIPAL = Principal("default", "ann")


class Overtaken:
    """A store behind whose back, once it was read, another request is served to its end."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.services: Services | None = None
        self.other: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def head(self, *args: Any, **kwargs: Any) -> HeadRecord:
        read = await self.store.head(*args, **kwargs)
        if self.other is not None:
            other, self.other = self.other, None
            await self.answer(other)
        return read

    async def answer(self, request: dict[str, Any]) -> Outcome:
        assert self.services is not None
        agent = self.services.agent("assistant")
        started = await take_request(self.services, PRINCIPAL, agent, read_run_input(request))
        if isinstance(started, Started):
            await started.live.task
        return started


@pytest.fixture
async def overtaken(tmp_path: Path) -> AsyncIterator[Overtaken]:
    store, clock, renderer = await open_store("sqlite://", tmp_path), SystemClock(), WireRenderer()
    overtaken = Overtaken(store)
    runs = RunManager(
        store=store,
        shelf=LogShelf(300, 1_000_000, monotonic),
        clock=clock,
        translator=lambda: Translator(clock).translate,
        renderer=renderer,
        hydrate=hydrate,
    )
    agents = {"assistant": Agent("assistant", model=ScriptedModel(["one", "two", "three"]))}
    overtaken.services = Services(Settings(), clock, cast(Store, overtaken), runs, agents)
    yield overtaken
    await runs.drain()
    await store.close()


def request(run: str, *messages: str) -> dict[str, Any]:
    said = [{"id": id, "role": "user", "content": id} for id in messages]
    return {"threadId": "t", "runId": run, "messages": said}


async def runs_of(overtaken: Overtaken) -> list[tuple[str, str | None]]:
    return [(run.id, run.previous_run_id) for run in await overtaken.store.runs("default", "t")]


async def test_a_message_that_was_said_meanwhile_is_not_taken_for_a_wish_for_another_answer(
    overtaken: Overtaken,
) -> None:
    overtaken.other = request("r1", "u1")
    with pytest.raises(HeadMoved):
        await overtaken.answer(request("r2", "u1"))
    assert await runs_of(overtaken) == [("r1", None)]


@pytest.mark.requirement("AGUI-06")
async def test_another_message_is_read_again_and_follows_what_was_said_meanwhile(
    overtaken: Overtaken,
) -> None:
    overtaken.other = request("r1", "u1")
    assert isinstance(await overtaken.answer(request("r2", "u2")), Started)
    assert await runs_of(overtaken) == [("r1", None), ("r2", "r1")]
