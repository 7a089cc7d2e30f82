"""One call of one hook. A hook is somebody else's code: it may raise, hang, or change what it is given.

So each runs in a task of its own (one that is not async in a thread), for as long as a tool may.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isinf
from typing import TypeVar, cast

from app.agent.blocking import in_thread
from app.agent.context import StopSignal
from app.agent.hooks import Abort, HookContext
from app.agent.limits import Limits
from app.agent.strays import Strays
from app.conversation.words import Words

_log = logging.getLogger(__name__)

C = TypeVar("C", bound=HookContext)
W = TypeVar("W", bound=Words)


class HookFailed(Exception):
    """A hook did not do what a hook does; the message names it, for the log."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """Calls hooks, within the bounds of a run."""

    limits: Limits
    strays: Strays

    async def result(
        self,
        hook: Callable[[C], object],
        given: C,
        *,
        stop: StopSignal | None = None,
        seconds: float | None = None,
    ) -> object:
        """What the hook returns. Abort if it raises that; HookFailed if it raises anything else or takes
        longer than `seconds` (None: than a tool may).

        With `stop`, which only the task that drives the run may give, Stopped if the run was asked to stop
        meanwhile. Without it the wait ends when it is cancelled, as that of a call does.
        """
        if stop is not None:
            stop.check()
        seconds = self.limits.tool_seconds if seconds is None else seconds
        bound = None if seconds is None or isinf(seconds) else seconds
        body = asyncio.create_task(_run(hook, given), name=f"hook {name_of(hook)}")
        try:
            waiting = asyncio.wait({body}, timeout=bound)
            await (waiting if stop is None else stop.interruptible(waiting))
            if not body.done():
                raise HookFailed(f"hook {name_of(hook)} did not finish within {seconds:g} s")
        except BaseException:
            await self._leave(body)
            raise
        return body.result()

    async def _leave(self, body: asyncio.Task[object]) -> None:
        """Cancels a hook, gives it its grace and leaves it alone then."""
        body.cancel()
        try:
            await asyncio.wait({body}, timeout=self.limits.grace_seconds)
        finally:
            self.strays.take(body)


async def _run(hook: Callable[[C], object], given: C) -> object:
    try:
        if _is_async(hook):
            return await cast("asyncio.Future[object]", hook(given))
        result = await in_thread(partial(hook, given), "hook")
        return await result if inspect.isawaitable(result) else result
    except Abort as abort:
        _log.warning("hook %s ends run %s: %s", name_of(hook), given.run_id, abort.public)
        raise
    except BaseException as error:
        # SystemExit would end the server. A cancellation that nobody asked for is the hook's own failure.
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise HookFailed(f"hook {name_of(hook)} raised {type(error).__name__}") from error


def _is_async(hook: Callable[..., object]) -> bool:
    """Also for an object with an async `__call__`."""
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004


def name_of(hook: Callable[..., object]) -> str:
    """How the log names a hook."""
    return getattr(hook, "__qualname__", None) or type(hook).__qualname__


def own(words: W) -> W:
    """The message or block, copied if anything in it could be changed: they are frozen themselves, the JSON
    values inside them are not."""
    return words.model_copy(deep=True) if _is_loose(words) else words


def _is_loose(value: object) -> bool:
    if isinstance(value, Words):
        return bool(value.model_extra) or any(map(_is_loose, vars(value).values()))
    if isinstance(value, tuple):
        return any(map(_is_loose, cast(tuple[object, ...], value)))
    return isinstance(value, dict | list)
