"""Models that do not let go, or would take all else with them: a run ends in time without them."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Sequence

import pytest

from app.agent.agent import Agent
from app.agent.context import StopSignal
from app.agent.events import AgentEvent, TextDelta
from app.agent.limits import Limits
from app.agent.models.base import CallPiece, Finished, ModelEvent, TextPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.prompt import Prompt
from app.conversation.messages import StopReason
from app.conversation.outcomes import EndReason
from tests.agent.running import PATIENCE, QUICK, answer, bounded, check, context, end_of, kept


class Stubborn:
    """Says a word, and then does not end when it is told to before `release` is set."""

    provider = name = "stubborn"
    inputs: frozenset[str] = frozenset()

    def __init__(self, way: str, *, raising: BaseException | None = None) -> None:
        self.way = way
        self.raising = raising
        self.release = asyncio.Event()
        self.ended = asyncio.Event()
        self.tasks: set[object] = set()

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
        self._note()
        try:
            yield TextPiece("half")
            await self._wait()
        finally:
            try:
                if self.way == "cleans up":
                    await self.release.wait()
                if self.raising is not None:
                    raise self.raising
            finally:
                self._note()
                self.ended.set()

    async def _wait(self) -> None:
        while not self.release.is_set():
            try:
                await asyncio.wait_for(self.release.wait(), 60)
            except asyncio.CancelledError:
                if self.way == "cleans up":
                    raise

    def _note(self) -> None:
        self.tasks.add(asyncio.current_task())


async def stopped(model: Stubborn, limits: Limits = QUICK) -> list[AgentEvent]:
    stop = StopSignal()
    told: list[AgentEvent] = []
    async for event in bounded(Agent("bot", model=model, limits=limits).respond(context("go", stop=stop))):
        told.append(event)
        if isinstance(event, TextDelta):
            asyncio.get_running_loop().call_later(0.01, stop.request, EndReason.STOP_REQUESTED)
    check(told)
    return told


@pytest.mark.parametrize("way", ["cleans up", "swallows"])
@pytest.mark.parametrize("raising", [None, RuntimeError("late"), SystemExit(1)])
async def test_a_stop_ends_the_run_while_its_model_still_cleans_up(
    way: str, raising: BaseException | None, caplog: pytest.LogCaptureFixture
) -> None:
    model = Stubborn(way, raising=raising)
    with caplog.at_level(logging.WARNING):
        told = await stopped(model)
    assert not model.ended.is_set()
    assert end_of(told).reason is EndReason.STOP_REQUESTED
    (message,) = kept(told)
    assert message.join_text() == "half"
    assert message.stop_reason is StopReason.ABORTED
    assert "model stubborn was cancelled, did not end in its grace" in caplog.text
    model.release.set()
    await asyncio.wait_for(model.ended.wait(), PATIENCE)
    assert len(model.tasks) == 1


async def test_a_model_has_its_grace_to_clean_up() -> None:
    model = Stubborn("cleans up")
    asyncio.get_running_loop().call_later(0.05, model.release.set)
    await stopped(model, Limits(grace_seconds=PATIENCE))
    assert model.ended.is_set()


async def test_a_model_that_was_left_alone_is_held_until_it_ends() -> None:
    tasks: list[weakref.ref[object]] = []

    class Forgotten:
        provider = name = "forgotten"
        inputs: frozenset[str] = frozenset()

        async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            tasks.append(weakref.ref(asyncio.current_task()))
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.Event().wait()
            yield TextPiece("never")

    agent = Agent("bot", model=Forgotten(), limits=Limits(model_idle_seconds=0.02, grace_seconds=0.02))
    await answer(agent, "go")
    gc.collect()
    assert tasks[0]() is not None


async def test_a_stop_is_seen_between_two_pieces_that_came_together() -> None:
    model = ScriptedModel([["one ", "two ", "three ", "four"]])
    stop = StopSignal()
    told: list[AgentEvent] = []
    async for event in bounded(Agent("bot", model=model).respond(context("go", stop=stop))):
        told.append(event)
        if isinstance(event, TextDelta) and event.delta == "two ":
            stop.request(EndReason.STOP_REQUESTED)
    check(told)
    assert [message.join_text() for message in kept(told)] == ["one two "]


@pytest.mark.parametrize("raising", [None, RuntimeError("late"), SystemExit(1), asyncio.CancelledError()])
async def test_an_answer_does_not_wait_for_ever_for_its_connection_to_close(
    raising: BaseException | None,
) -> None:
    class Hanging:
        provider = name = "hanging"
        inputs: frozenset[str] = frozenset()

        def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            return _Pieces([TextPiece("all"), Finished(StopReason.STOP)], raising)

    told = await answer(Agent("bot", model=Hanging(), limits=QUICK), "go")
    assert [message.join_text() for message in kept(told)] == ["all"]
    assert end_of(told).reason is EndReason.DONE


class _Pieces:
    """A stream that is no generator, and hangs or raises when it is closed."""

    def __init__(self, pieces: Sequence[ModelEvent], raising: BaseException | None) -> None:
        self._raising = raising
        self._pieces = iter(pieces)

    def __aiter__(self) -> "_Pieces":
        return self

    async def __anext__(self) -> ModelEvent:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if self._raising is not None:
            raise self._raising
        await asyncio.Event().wait()


@pytest.mark.parametrize("way", ["cleans up", "swallows"])
async def test_a_silent_model_times_out_even_if_it_does_not_let_go(way: str) -> None:
    model = Stubborn(way)
    limits = Limits(model_idle_seconds=0.02, grace_seconds=0.02)
    told = await answer(Agent("bot", model=model, limits=limits), "go")
    assert end_of(told).reason is EndReason.MODEL_TIMEOUT
    model.release.set()
    await asyncio.wait_for(model.ended.wait(), PATIENCE)


async def test_a_model_is_read_ahead_only_so_far() -> None:
    class Endless:
        provider = name = "endless"
        inputs: frozenset[str] = frozenset()
        said = 0

        async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            while True:
                self.said += 1
                yield TextPiece("x")

    model = Endless()
    run = Agent("bot", model=model).respond(context("go"))
    told = 0
    async for event in run:
        told += isinstance(event, TextDelta)
        await asyncio.sleep(0)
        if told == 500:
            break
    assert 500 <= model.said < 700
    await run.aclose()


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_a_model_that_raises_what_ends_programs_or_tasks_fails_only_its_run(
    raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([["half", CallPiece("0", "{}", name="weather"), raised]])
    with caplog.at_level(logging.ERROR):
        told = await answer(Agent("bot", model=model), "go")
    message, result = kept(told)
    assert message.join_text() == "half"
    assert message.stop_reason is StopReason.ERROR
    assert result.is_error
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
    assert type(raised).__name__ in caplog.text


async def test_a_model_that_raises_at_once_fails_only_its_run() -> None:
    class Closed:
        provider = name = "closed"
        inputs: frozenset[str] = frozenset()

        def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
            raise SystemExit(1)

    told = await answer(Agent("bot", model=Closed()), "go")
    assert kept(told) == []
    assert end_of(told).reason is EndReason.INTERNAL_ERROR
