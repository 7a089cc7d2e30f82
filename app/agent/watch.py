"""The timers of one run. A time that is up asks the run to stop, as anybody else would."""

import asyncio
from types import TracebackType

from app.agent.context import StopSignal
from app.agent.limits import Limits
from app.conversation.outcomes import EndReason


class Watch:
    """Ends a run whose time is up, or whose model is silent for too long.

    Silence is timed by one timer that is set anew when it fires, not by one for every event; only time spent
    waiting for the model counts, so a slow consumer is not blamed on it.
    """

    def __init__(self, stop: StopSignal, limits: Limits) -> None:
        self._stop = stop
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._run: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None

    def __enter__(self) -> "Watch":
        limits = self._limits
        if limits.run_seconds is not None:
            self._run = self._loop.call_later(limits.run_seconds, self._stop.request, EndReason.RUN_TIMEOUT)
        if limits.model_idle_seconds is not None:
            self._arm(limits.model_idle_seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for timer in (self._run, self._idle):
            if timer is not None:
                timer.cancel()

    def wait(self) -> None:
        """The run begins to wait for the model."""
        self._waiting_since = self._loop.time()

    def heard(self) -> None:
        """The wait is over."""
        self._waiting_since = None

    def _arm(self, seconds: float) -> None:
        self._idle = self._loop.call_later(seconds, self._check)

    def _check(self) -> None:
        allowed = self._limits.model_idle_seconds
        assert allowed is not None
        since = self._waiting_since
        silent = 0.0 if since is None else self._loop.time() - since
        if silent >= allowed:
            self._stop.request(EndReason.MODEL_TIMEOUT)
        else:
            self._arm(allowed - silent)
