"""Code of an application's own, run beside a run: it may hang, and must not hold the run up."""

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

from app.agent.context import StopSignal
from app.agent.limits import Limits
from app.agent.strays import Strays

T = TypeVar("T")


async def aside(
    body: Coroutine[Any, Any, T], name: str, stop: StopSignal, limits: Limits, strays: Strays
) -> T:
    """What the body gives or raises, in a task of its own, for as long as a tool may take.

    Stopped if the run is asked to stop meanwhile, TimeoutError behind the time. The body is cancelled then,
    gets its grace and is left alone.
    """
    if stop.reason is not None:
        body.close()
    stop.check()
    seconds = limits.tool_seconds
    task = asyncio.create_task(body, name=name)
    try:
        bound = None if seconds is None or math.isinf(seconds) else seconds
        await stop.interruptible(asyncio.wait({task}, timeout=bound))
        if not task.done():
            raise TimeoutError(f"{name} did not finish within {seconds:g} s")
    except BaseException:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=limits.grace_seconds)
        finally:
            strays.take(task)
        raise
    return task.result()
