"""Starts runs, lets them be followed, and stops them. Owns the tasks; a run never belongs to a request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from app.agent.context import RunContext, Runnable, StopSignal
from app.agent.events import AgentEvent, RunDone, RunOpened
from app.clock import Clock
from app.conversation.entries import StoredEntry
from app.conversation.messages import Message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.views import model_view, reader_view, title
from app.errors import AppError
from app.runs.log import EventLog
from app.runs.log_memory import LogShelf
from app.runs.recorder import Recorder, Renderer, Translate, new_entries
from app.store.adapter import KEEP, Claim, Keep, RunRecord, Store, ThreadAttributes

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 1.0
"""How long a stop waits for the run to settle before it answers that it is on its way."""
SETTLE_AGAIN_SECONDS = 5.0
"""Between attempts to store an end that the database refused."""
DRAIN_SECONDS = 10.0
"""How long live runs may take to end when the server does."""


@dataclass(frozen=True, slots=True)
class Order:
    """A run to be started: whose, where, by which agent, on what."""

    namespace: str
    sender_id: str | None
    thread_id: str
    run_id: str
    agent: Runnable
    entries: Sequence[StoredEntry]
    thread: ThreadAttributes
    parent_run_id: str | None = None
    expected_head: str | Keep | None = KEEP
    """The head that the entries were read against; the claim is refused if there is another by now."""
    state: JsonValue | Keep = KEEP
    state_differs: bool = False
    meta: Mapping[str, JsonValue] | Keep = KEEP
    input: Mapping[str, JsonValue] | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run of this process."""

    record: RunRecord
    log: EventLog
    stop: StopSignal
    task: asyncio.Task[None]


class RunManager:
    """The runs of one process."""

    def __init__(
        self,
        *,
        store: Store,
        shelf: LogShelf,
        clock: Clock,
        translator: Callable[[], Translate],
        renderer: Renderer,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._clock = clock
        self._translator = translator
        self._renderer = renderer
        self._starting: dict[asyncio.Task[LiveRun], Order] = {}
        self._live: dict[tuple[str, str], LiveRun] = {}
        self._by_thread: dict[tuple[str, str], LiveRun] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._draining = False

    async def start(self, order: Order) -> LiveRun:
        """Claims the thread and sets the agent to work. ThreadBusy, RunExists or HeadMoved as the ledger
        says; while the server drains, ShuttingDown.

        The claim is a task of ours: a caller that is cancelled in the middle leaves no half-started run.
        """
        if self._draining:
            raise ShuttingDown()
        task = asyncio.create_task(self._claim(order), name=f"claim {order.run_id}")
        self._starting[task] = order
        task.add_done_callback(self._starting.pop)
        return await asyncio.shield(task)

    async def _claim(self, order: Order) -> LiveRun:
        record = await self._store.claim(
            Claim(
                namespace=order.namespace,
                thread_id=order.thread_id,
                run_id=order.run_id,
                thread=order.thread,
                agent=order.agent.name,
                sender_id=order.sender_id,
                created_at=order.thread.created_at,
                entries=new_entries(order.entries, self._renderer),
                title=title(model_view(order.entries)),
                parent_run_id=order.parent_run_id,
                expected_head=order.expected_head,
                state=order.state,
                meta=order.meta,
                input=order.input,
                digest=order.digest,
            )
        )
        return self._launch(order, record)

    def _launch(self, order: Order, record: RunRecord) -> LiveRun:
        """From here on the run has a task, and the task sees to its end. Nothing in here may fail."""
        log = self._shelf.open(order.namespace, record.id, record.seq, record.epoch)
        stop = StopSignal()
        task = asyncio.create_task(self._run(order, record, log, stop), name=f"run {record.id}")
        live = LiveRun(record, log, stop, task)
        self._live[order.namespace, record.id] = live
        self._by_thread[order.namespace, order.thread_id] = live
        if self._draining:
            stop.request(EndReason.SHUTDOWN)
        return live

    async def _run(self, order: Order, record: RunRecord, log: EventLog, stop: StopSignal) -> None:
        translate = self._translator()
        said = model_view(order.entries)
        recorder = Recorder(
            namespace=order.namespace,
            run_id=record.id,
            ledger=self._store,
            log=log,
            translate=translate,
            renderer=self._renderer,
            clock=self._clock,
            agent=order.agent.name,
            said=said,
        )

        async def begin() -> AsyncIterator[AgentEvent]:
            log.append(translate(_opened(order, record, said)))
            context = RunContext(
                namespace=order.namespace,
                thread_id=order.thread_id,
                run_id=record.id,
                history=await self._history(order, record, said),
                sender_id=order.sender_id,
                state=record.state,
                clock=self._clock,
                stop=stop,
            )
            return order.agent.respond(context)

        stored = False
        try:
            stored = await recorder.record(begin)
            logger.info("run %s of thread %s has ended", record.id, record.thread_id)
        except Exception:
            logger.exception("run %s: it could not be recorded", record.id)
        finally:
            # Without effect where the run's end was told already, as it is unless we are cancelled.
            reason = EndReason.SHUTDOWN if self._draining else EndReason.INTERNAL_ERROR
            log.append(translate(RunDone(RunEnd.by(reason))))
            self._forget(order.namespace, record)
            if not stored:
                self._settle_later(recorder, record)

    async def _history(self, order: Order, record: RunRecord, said: list[Message]) -> list[Message]:
        """The model's view of the branch. A first run has nothing before what was said just now."""
        if record.previous_run_id is None:
            return said
        turns = await self._store.load(order.namespace, order.thread_id, record.previous_run_id)
        return [*model_view(entry for turn in turns for entry in turn.entries), *said]

    def _forget(self, namespace: str, record: RunRecord) -> None:
        """The followers first: whatever else is wrong, their streams end."""
        self._shelf.retire(namespace, record.id)
        self._live.pop((namespace, record.id), None)
        current = self._by_thread.get((namespace, record.thread_id))
        if current is not None and current.record.id == record.id:
            del self._by_thread[namespace, record.thread_id]

    def _settle_later(self, recorder: Recorder, record: RunRecord) -> None:
        """Goes on trying to store an end that the database refused, so that its thread gets free."""
        if self._draining:
            return  # the next start settles what is found running
        task = asyncio.create_task(self._settle(recorder, record), name=f"settle {record.id}")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, recorder: Recorder, record: RunRecord) -> None:
        while True:
            await asyncio.sleep(SETTLE_AGAIN_SECONDS)
            try:
                await recorder.settle()
            except AppError as error:
                logger.warning("run %s: its end still cannot be stored: %s", record.id, error.public)
            else:
                return

    async def live(self, namespace: str, thread_id: str) -> LiveRun | None:
        """The live run of a thread, if there is one; one that is being claimed is waited for."""
        await self._started(namespace, lambda order: order.thread_id == thread_id)
        return self._by_thread.get((namespace, thread_id))

    async def log(self, namespace: str, run_id: str) -> EventLog | None:
        """The log of a run, live or ended not long ago; of one that is being claimed once it is."""
        await self._started(namespace, lambda order: order.run_id == run_id)
        return self._shelf.get(namespace, run_id)

    async def stop(self, namespace: str, run_id: str, reason: EndReason = EndReason.STOP_REQUESTED) -> None:
        """Asks a run to end and waits a moment for it. One that is not live is left as it is."""
        await self._started(namespace, lambda order: order.run_id == run_id)
        run = self._live.get((namespace, run_id))
        if run is not None:
            run.stop.request(reason)
            await asyncio.wait({run.task}, timeout=SETTLE_SECONDS)

    async def _started(self, namespace: str, concerns: Callable[[Order], bool]) -> None:
        """Waits for claims in flight, so that a run whose row is there has its task too."""
        tasks = {t for t, order in self._starting.items() if order.namespace == namespace and concerns(order)}
        if tasks:
            await asyncio.wait(tasks)

    async def drain(self) -> None:
        """Takes no new run and ends the live ones, each with a terminal event. Safe to call again.

        A run that does not end in time is left; the next start finds it running and settles it.
        """
        self._draining = True
        for task in self._settling:
            task.cancel()
        if self._starting:
            await asyncio.wait(self._starting)
        runs = list(self._live.values())
        for run in runs:
            run.stop.request(EndReason.SHUTDOWN)
        if runs:
            _, late = await asyncio.wait({run.task for run in runs}, timeout=DRAIN_SECONDS)
            for task in late:
                logger.error("%s did not end in time", task.get_name())
                task.cancel()


def _opened(order: Order, record: RunRecord, said: list[Message]) -> RunOpened:
    return RunOpened(
        thread_id=order.thread_id,
        run_id=record.id,
        agent=order.agent.name,
        accepted=tuple(reader_view(said)),
        state=record.state,
        state_differs=order.state_differs,
        parent_run_id=order.parent_run_id,
    )


class ShuttingDown(AppError):
    """The server takes no new work."""

    code = "shutting_down"
    status = 503

    def __init__(self) -> None:
        super().__init__("The server is shutting down; try again in a moment.")
