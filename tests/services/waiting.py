"""Waiting for something to become true, with a bound."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

PATIENCE = 20.0
"""Seconds after which a test gives up."""


async def eventually(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Waits until the condition holds; TimeoutError if it never does."""
    async with asyncio.timeout(PATIENCE):
        while True:
            holds = condition()
            if await holds if isawaitable(holds) else holds:
                return
            await asyncio.sleep(0.005)
