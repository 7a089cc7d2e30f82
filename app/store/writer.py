"""The one thread that writes to a SQLite database: what waits is committed together."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from app.store.database import Unit, closed, drivers_errors_wrapped, not_stored

logger = logging.getLogger(__name__)
T = TypeVar("T")
GROUP_LIMIT = 256


@dataclass(slots=True)
class _Job:
    """A unit and who waits for it; `result` or `error` is set before the future is told."""

    unit: Unit[Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None

    def tell(self) -> None:
        """On the waiter's loop. A waiter that was cancelled has gone, and its unit stands."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Takes units from any task of its loop and runs them in the order they came.

    Units that wait at the same time share one transaction and one fsync, each in a savepoint of its own, so
    that one that fails takes none of the others along. A unit that is alone needs no savepoint. Nobody hears
    of success before the COMMIT.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._closing = False
        self._ended = asyncio.Event()
        self._thread = Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    async def run(self, unit: Unit[T]) -> T:
        """The result of the unit, once it is committed. StoreClosed after `close`, and without a thread."""
        if self._closing:
            raise closed()
        job = _Job(unit, self._loop.create_future())
        self._jobs.put(job)
        return await job.future

    async def close(self) -> None:
        """Finishes what waits, and ends the thread."""
        if not self._closing:
            self._closing = True
            self._jobs.put(None)
        await self._ended.wait()

    def _work(self) -> None:
        group: list[_Job] = []
        try:
            while (following := self._next_group()) is not None:
                group = following
                self._commit(group)
                self._on_loop(partial(_tell, group))
        except BaseException:
            logger.critical("the writer of the store ended", exc_info=True)
        finally:
            self._on_loop(partial(self._end, group))
            self._release()

    def _end(self, group: list[_Job]) -> None:
        """On the loop, where no job can come in between: nobody waits for a thread that is gone.

        Of the last group, those have heard already whom there was something to tell.
        """
        self._closing = True
        while not self._jobs.empty():
            if (job := self._jobs.get()) is not None:
                group.append(job)
        for job in group:
            job.error = closed()
            job.tell()

    def _release(self) -> None:
        try:
            if self._connection is not None:
                self._connection.close()
            self._engine.dispose()
        except Exception:
            logger.exception("the database was not closed in good order")
        finally:
            self._on_loop(self._ended.set)

    def _on_loop(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # a loop that was closed has nobody left to tell
            self._loop.call_soon_threadsafe(callback)

    def _next_group(self) -> list[_Job] | None:
        """Waits for a job and takes whatever came meanwhile; None at the end."""
        job = self._jobs.get()
        if job is None:
            return None
        group = [job]
        while len(group) < GROUP_LIMIT:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            group.append(job)
        return group

    def _commit(self, group: list[_Job]) -> None:
        """One transaction for the group. If that itself fails, nothing of the group is stored."""
        try:
            with drivers_errors_wrapped():
                connection = self._connected()
                with connection.begin():
                    if len(group) == 1:
                        group[0].result = group[0].unit(connection)
                    else:
                        for job in group:
                            _attempt(connection, job)
        except BaseException as error:
            for job in group:
                job.error = _public(error)

    def _connected(self) -> Connection:
        """The same connection every time: taking one from the engine costs as much as a short transaction."""
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection


def _attempt(connection: Connection, job: _Job) -> None:
    """Runs one unit in a savepoint. Only a failing savepoint raises: then the whole transaction is lost."""
    savepoint = connection.begin_nested()
    try:
        with drivers_errors_wrapped():
            job.result = job.unit(connection)
    except BaseException as error:
        job.error = _public(error)
        savepoint.rollback()
    else:
        savepoint.commit()


def _public(error: BaseException) -> Exception:
    """What the waiter is told. An exit or a cancellation that a unit raised is neither the loop's nor the
    waiter's, and no future takes a StopIteration."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    failed = not_stored()
    failed.__cause__ = error
    return failed


def _tell(group: list[_Job]) -> None:
    for job in group:
        job.tell()
