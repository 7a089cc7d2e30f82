"""One request to a model, read by a task of its own.

A model is somebody else's code: it may take long to clean up, swallow its cancellation, or raise what would
end a whole program. So it runs in a task that can be left alone, which is also the one task that opens and
closes all the scopes in the provider's client. One task for a request and not one for a piece: it reads
ahead while there is something to read, and the run takes all that has come at once.
"""

import asyncio
import logging
from types import TracebackType

from app.agent.models.base import Model, ModelEvent
from app.agent.prompt import Prompt
from app.agent.strays import Strays

_log = logging.getLogger(__name__)

_AHEAD = 64
"""Pieces that are read before the run took the last ones: a slow run slows its model down."""


class ModelStream:
    """The answer to one prompt, as an async context: wait for `news` unless it is `ready`, then `take` what
    is there, until that is nothing.

    Leaving the context closes the connection to the provider. That takes at most `grace` seconds; a model
    that is not done by then goes to the strays.
    """

    def __init__(self, model: Model, prompt: Prompt, grace: float, strays: Strays) -> None:
        self._model = model
        self._prompt = prompt
        self._grace = grace
        self._strays = strays
        self._loop = asyncio.get_running_loop()
        self._pieces: list[ModelEvent] = []
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._over = False
        self._left = False
        self._error: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ModelStream":
        self._task = asyncio.create_task(self._read(), name=f"model {self._model.name}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._task
        assert task is not None
        self._left = True
        if task.done():
            return
        if not self._over:
            task.cancel()
        try:
            await asyncio.wait({task}, timeout=self._grace)
        finally:
            if not task.done():
                if self._over:  # it had its time to hang up; the others are cancelled already
                    task.cancel()
                self._strays.take(task)

    @property
    def ready(self) -> bool:
        """Whether there is something to take, were it the end."""
        return self._over or bool(self._pieces)

    def news(self) -> "asyncio.Future[None]":
        """Is done when a piece or the end has come, or when somebody calls `wake`."""
        self._news = self._loop.create_future()
        return self._news

    def wake(self) -> None:
        """Ends the wait for news, if there is one."""
        _wake(self._news)

    def take(self) -> list[ModelEvent]:
        """The pieces that have come since the last time; when it is ready, none means that it is over.

        Raises what the model raised, behind its last piece; RuntimeError for what would end a task or the
        program.
        """
        if self._pieces:
            taken, self._pieces = self._pieces, []
            _wake(self._room)
            return taken
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None
        return []

    async def _read(self) -> None:
        stream = None
        try:
            stream = self._model.stream(self._prompt)
            async for piece in stream:
                self._pieces.append(piece)
                _wake(self._news)
                if len(self._pieces) >= _AHEAD:
                    self._room = self._loop.create_future()
                    await self._room
        except BaseException as error:
            self._fail(error)
        # The run goes on from here: it need not wait for the provider to hang up.
        self._over = True
        _wake(self._news)
        await self._hang_up(stream)

    def _fail(self, error: BaseException) -> None:
        if not self._left:
            self._error = _as_failure(error)
        elif not isinstance(error, asyncio.CancelledError):
            _log.warning("the model %s did not close cleanly", self._model.name, exc_info=error)

    async def _hang_up(self, stream: object) -> None:
        """Closes the model's iterator, in the task that iterated it. What that raises fails no run."""
        close = getattr(stream, "aclose", None)
        if close is None:
            return
        try:
            await close()
        except BaseException as error:
            if not (self._left and isinstance(error, asyncio.CancelledError)):
                _log.warning("the model %s did not close cleanly", self._model.name, exc_info=True)


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _as_failure(error: BaseException) -> Exception:
    """An exception that fails one run. A model that raises SystemExit, or a cancellation that nobody asked
    for, must end neither the program nor the task that drives the run."""
    if isinstance(error, Exception):
        return error
    failure = RuntimeError(f"the model raised {type(error).__name__}")
    failure.__cause__ = error
    return failure
