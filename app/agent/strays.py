"""Tasks that were cancelled and go on all the same."""

import asyncio
import logging

_log = logging.getLogger(__name__)


class Strays:
    """Tasks that nobody waits for any more.

    Each is held until it ends by itself, so that it is not collected half way; what it gives or raises is
    nobody's. Owned by what outlives a run.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def take(self, task: asyncio.Task[object]) -> None:
        """Leaves a task alone that did not end in its grace. Nothing is left of one that has ended."""
        if task.done():
            self._forget(task)
            return
        _log.warning("%s was cancelled, did not end in its grace and is left alone", task.get_name())
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain of it
