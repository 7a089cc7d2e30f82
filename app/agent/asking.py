"""One request to a model, made again while it fails before its first word."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from app.agent.context import RunContext, StopSignal
from app.agent.events import AgentEvent
from app.agent.limits import Limits
from app.agent.models.base import Model, ModelError, ModelEvent
from app.agent.prompt import Prompt
from app.agent.response import Response
from app.agent.strays import Strays
from app.agent.stream import ModelStream
from app.agent.tally import Tally
from app.agent.watch import Watch

_log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]

_CUT = "The connection to the model was lost before its answer was complete."


@dataclass(frozen=True, slots=True)
class Desk:
    """What all requests of one run share. `used` are the call ids that are taken already."""

    run: RunContext
    limits: Limits
    watch: Watch
    strays: Strays
    tally: Tally
    used: set[str]
    own_ids: bool = False
    """Whether more call ids may be taken than those."""
    sleep: Sleep = asyncio.sleep


class Asking:
    """One request. `response` is what came of it, also after an error."""

    def __init__(self, desk: Desk, sender_id: str | None = None) -> None:
        self._desk = desk
        self._sender_id = sender_id
        self.response = self._blank()

    def _blank(self) -> Response:
        return Response(self._desk.run.clock, self._desk.used, self._sender_id, own_ids=self._desk.own_ids)

    async def events(self, prompt: Prompt, model: Model) -> AsyncGenerator[AgentEvent, None]:
        """What the model says. Stopped, ModelError, or what the model raised; what it cost is counted."""
        limits, stop = self._desk.limits, self._desk.run.stop
        for attempt in range(limits.retries + 1):
            try:
                async with aclosing(self._request(prompt, model)) as telling:
                    async for event in telling:
                        yield event
                return
            except ModelError as error:
                if self.response.begun or not error.retryable or attempt == limits.retries:
                    raise
                _log.warning("model call failed and is tried again: %s", error.public)
            finally:
                self._count(model)
            self.response = self._blank()
            await stop.interruptible(self._desk.sleep(limits.retry_seconds * 2**attempt))

    async def _request(self, prompt: Prompt, model: Model) -> AsyncGenerator[AgentEvent, None]:
        response, desk, stop = self.response, self._desk, self._desk.run.stop
        async with ModelStream(model, prompt, desk.limits.grace_seconds, desk.strays) as stream:
            with stop.waking(stream.wake):
                while batch := await _next_batch(stream, stop, desk.watch):
                    for piece in batch:
                        for event in response.take(piece):
                            yield event
                        stop.check()
        if response.finished is None:
            raise ModelError(_CUT, retryable=True)

    def _count(self, model: Model) -> None:
        finished = self.response.finished
        if finished is not None:
            self._desk.tally.add(model.provider, finished.model or model.name, finished.usage)


async def _next_batch(stream: ModelStream, stop: StopSignal, watch: Watch) -> Sequence[ModelEvent]:
    """What the model has said meanwhile; empty at its end."""
    stop.check()
    if not stream.ready:
        watch.wait()
        try:
            await stream.news()
        finally:
            watch.heard()
        stop.check()
    return stream.take()
