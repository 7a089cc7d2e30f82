"""Starts runs, lets them be followed, and stops them. Owns the tasks; a run never belongs to a request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Protocol

from app.agent.context import RunContext, StopSignal
from app.agent.events import AgentEvent, Appended, RunDone, RunOpened, Snapshot
from app.agent.pairing import tail_of, waiting_calls
from app.clock import Clock, new_id
from app.conversation.entries import CustomEntry, TransientEntry
from app.conversation.interrupts import Interrupt
from app.conversation.messages import Message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.views import model_view, reader_view, title
from app.errors import AppError
from app.runs.children import ManagedChildren
from app.runs.held import with_held
from app.runs.log import EventLog
from app.runs.log_memory import LogShelf
from app.runs.order import LiveRun, Order
from app.runs.recorder import Recorder, Renderer, Translate, new_entries
from app.store.adapter import Claim, RunRecord, Store, WireRow

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 1.0
"""How long a stop waits for the run to settle before it answers that it is on its way."""
SETTLE_AGAIN_SECONDS = 5.0
"""Between attempts to store an end that the database refused."""
DRAIN_SECONDS = 10.0
"""How long live runs may take to end when the server does."""


class Hydrate(Protocol):
    """Makes a JSON array of AG-UI messages, those of 0.x clients if `legacy`."""

    def __call__(self, rows: Sequence[WireRow], *, legacy: bool) -> bytes: ...


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
        hydrate: Hydrate,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._clock = clock
        self._translator = translator
        self._renderer = renderer
        self._hydrate = hydrate
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
                previous_run_id=order.previous_run_id,
                branch_after_entry=order.branch_after_entry,
                resumes=order.resumes is not None,
                state=order.state,
                meta=order.meta,
                input=with_held(order.input, order.held),
                digest=order.digest,
            )
        )
        return self._launch(order, record)

    def _launch(self, order: Order, record: RunRecord) -> LiveRun:
        """From here on the run has a task, and the task sees to its end. Nothing in here may fail."""
        log = self._shelf.open(order.namespace, record.id, record.seq, record.epoch, record.state)
        translate, stop = self._translator(), StopSignal()
        ended: asyncio.Future[tuple[RunEnd, str]] = asyncio.get_running_loop().create_future()
        job = self._run(order, record, log, translate, stop, ended)
        task = asyncio.create_task(job, name=f"run {record.id}")
        live = LiveRun(record, log, translate, stop, task, ended)
        self._live[order.namespace, record.id] = live
        self._by_thread[order.namespace, order.thread_id] = live
        if self._draining:
            stop.request(EndReason.SHUTDOWN)
        return live

    async def _run(
        self,
        order: Order,
        record: RunRecord,
        log: EventLog,
        translate: Translate,
        stop: StopSignal,
        ended: "asyncio.Future[tuple[RunEnd, str]]",
    ) -> None:
        recorder = Recorder(
            namespace=order.namespace,
            run_id=record.id,
            ledger=self._store,
            log=log,
            translate=translate,
            renderer=self._renderer,
            clock=self._clock,
            agent=order.agent.name,
            said=model_view(order.entries),
            held=order.held,
            snapshot=partial(self._snapshot, order, record),
        )

        async def begin() -> AsyncIterator[AgentEvent]:
            log.append(translate(_opened(order, record)))
            history = await self._history(order, record)
            recorder.know(tail_of(history, waiting_calls(history)))
            return order.agent.respond(self._context(order, record, history, stop))

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
            ended.set_result((recorder.end or RunEnd.by(reason), recorder.answer))
            if not stored:
                self._settle_later(recorder, record)

    def _context(
        self, order: Order, record: RunRecord, history: Sequence[Message], stop: StopSignal
    ) -> RunContext:
        asked = order.resumes.interrupts if order.resumes is not None else ()
        return RunContext(
            namespace=order.namespace,
            thread_id=order.thread_id,
            run_id=record.id,
            history=history,
            sender_id=order.sender_id,
            state=record.state,
            clock=self._clock,
            stop=stop,
            interrupts=[Interrupt.model_validate(interrupt) for interrupt in asked],
            answers={answer.interrupt_id: answer for answer in order.answers},
            client_tools=order.client_tools,
            held=order.held,
            children=ManagedChildren(order, stop, self._store, self._clock, self.start),
        )

    async def _history(self, order: Order, record: RunRecord) -> list[Message]:
        """The model's view of the branch, as far back as the agent needs it, and of what was said just now. A
        first run has nothing before it."""
        said = model_view(order.entries)
        if record.previous_run_id is None:
            return said
        past = await self._store.recall(order.namespace, record.id, order.agent.recall())
        return [*model_view(past), *said]

    async def _snapshot(self, order: Order, record: RunRecord) -> Snapshot:
        """The thread as it is stored by now."""
        page = await self._store.messages(
            order.namespace, order.thread_id, renderer=self._renderer.version, run_id=record.id
        )
        run = await self._store.get_run(order.namespace, order.thread_id, record.id)
        return Snapshot(
            state=None if run is None else run.state,
            messages=self._hydrate(page.rows, legacy=False),
            legacy_messages=self._hydrate(page.rows, legacy=True),
        )

    async def post(
        self, namespace: str, thread_id: str, entries: Sequence[CustomEntry | TransientEntry]
    ) -> str | None:
        """Adds application records to a thread, shows them to those who follow its live run, and names the
        run that holds them. Transient ones are not stored; None where nothing was and nothing runs. Errors
        are those of the store's `add_records`."""
        run_id: str | None = None
        stored = [entry for entry in entries if isinstance(entry, CustomEntry)]
        if stored:
            new = new_entries(stored, self._renderer)
            now = self._clock.now()
            run_id = await self._store.add_records(namespace, thread_id, new, now, run_id=new_id("run"))
        live = self._by_thread.get((namespace, thread_id))
        if live is None:
            return run_id
        for entry in entries:
            live.tell(Appended(entry))
        return live.record.id

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


def _opened(order: Order, record: RunRecord) -> RunOpened:
    said = model_view(order.entries)
    records = [entry for entry in order.entries if isinstance(entry, CustomEntry)]
    messages = reader_view(message for message in said if message.id not in order.settled)
    return RunOpened(
        thread_id=order.thread_id,
        run_id=record.id,
        agent=order.agent.name,
        accepted=(*messages, *records),
        state=record.state,
        state_differs=order.state_differs,
        settled=tuple(message for message in said if message.id in order.settled),
        held=tuple(reader_view(order.held)),
        parent_run_id=order.parent_run_id,
    )


class ShuttingDown(AppError):
    """The server takes no new work."""

    code = "shutting_down"
    status = 503

    def __init__(self) -> None:
        super().__init__("The server is shutting down; try again in a moment.")
