"""Starts runs, lets them be followed, and stops them. Owns the tasks; a run never belongs to a request."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from app.agent.context import RunContext, Runnable, StopSignal
from app.agent.events import RunOpened
from app.clock import Clock
from app.conversation.entries import MessageEntry, StoredEntry
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
        self._live: dict[tuple[str, str], LiveRun] = {}
        self._by_thread: dict[tuple[str, str], LiveRun] = {}
        self._starting: set[asyncio.Task[LiveRun]] = set()
        self._draining = False

    async def start(self, order: Order) -> LiveRun:
        """Claims the thread and sets the agent to work. ThreadBusy or RunExists as the ledger says; while
        the server drains, ShuttingDown.

        The claim is a task of ours: a caller that is cancelled in the middle leaves no half-started run.
        """
        if self._draining:
            raise ShuttingDown()
        task = asyncio.create_task(self._claim(order), name=f"claim {order.run_id}")
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return await asyncio.shield(task)

    async def _claim(self, order: Order) -> LiveRun:
        messages = [entry.message for entry in order.entries if isinstance(entry, MessageEntry)]
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
                title=title(messages),
                parent_run_id=order.parent_run_id,
                state=order.state,
                meta=order.meta,
                input=order.input,
                digest=order.digest,
            )
        )
        return self._launch(order, record, messages)

    def _launch(self, order: Order, record: RunRecord, messages: list[Message]) -> LiveRun:
        log = self._shelf.open(order.namespace, record.id, record.seq, record.epoch)
        translate = self._translator()
        opened = RunOpened(
            thread_id=order.thread_id,
            run_id=record.id,
            agent=order.agent.name,
            accepted=tuple(reader_view(messages)),
            state=record.state,
            state_differs=order.state_differs,
            parent_run_id=order.parent_run_id,
        )
        log.append(translate(opened))
        recorder = Recorder(
            namespace=order.namespace,
            run_id=record.id,
            ledger=self._store,
            log=log,
            translate=translate,
            renderer=self._renderer,
            clock=self._clock,
            agent=order.agent.name,
            said=messages,
        )
        stop = StopSignal()
        work = self._run(order, record, messages, recorder, stop)
        task = asyncio.create_task(work, name=f"run {record.id}")
        live = LiveRun(record, log, stop, task)
        self._live[order.namespace, record.id] = live
        self._by_thread[order.namespace, order.thread_id] = live
        if self._draining:
            stop.request(EndReason.SHUTDOWN)
        return live

    async def _run(
        self, order: Order, record: RunRecord, said: list[Message], recorder: Recorder, stop: StopSignal
    ) -> None:
        try:
            try:
                history = await self._history(order, record, said)
            except AppError:
                logger.exception("run %s: its history could not be read", record.id)
                await recorder.finish(RunEnd.by(EndReason.STORAGE_FAILED))
                return
            context = RunContext(
                namespace=order.namespace,
                thread_id=order.thread_id,
                run_id=record.id,
                history=history,
                sender_id=order.sender_id,
                state=record.state,
                clock=self._clock,
                stop=stop,
            )
            await recorder.record(order.agent.respond(context))
        finally:
            self._forget(order.namespace, record)

    async def _history(self, order: Order, record: RunRecord, said: list[Message]) -> list[Message]:
        """The model's view of the branch. A first run has nothing before what was said just now."""
        if record.previous_run_id is None:
            return said
        turns = await self._store.load(order.namespace, order.thread_id, record.previous_run_id)
        return [*model_view(entry for turn in turns for entry in turn.entries), *said]

    def _forget(self, namespace: str, record: RunRecord) -> None:
        self._live.pop((namespace, record.id), None)
        if self._by_thread[namespace, record.thread_id].record.id == record.id:
            del self._by_thread[namespace, record.thread_id]
        self._shelf.retire(namespace, record.id)

    def live(self, namespace: str, thread_id: str) -> LiveRun | None:
        """The live run of a thread, if this process has one."""
        return self._by_thread.get((namespace, thread_id))

    def log(self, namespace: str, run_id: str) -> EventLog | None:
        """The log of a run, live or ended not long ago."""
        return self._shelf.get(namespace, run_id)

    async def stop(self, namespace: str, run_id: str, reason: EndReason = EndReason.STOP_REQUESTED) -> bool:
        """Asks a run to end and waits a moment for it. Whether it has settled; a run that is not live has."""
        run = self._live.get((namespace, run_id))
        if run is None:
            return True
        run.stop.request(reason)
        done, _ = await asyncio.wait({run.task}, timeout=SETTLE_SECONDS)
        return bool(done)

    async def drain(self) -> None:
        """Takes no new run and ends the live ones, each with a terminal event. Safe to call again."""
        self._draining = True
        if self._starting:
            await asyncio.wait(self._starting)
        runs = list(self._live.values())
        for run in runs:
            run.stop.request(EndReason.SHUTDOWN)
        if runs:
            await asyncio.wait({run.task for run in runs})


class ShuttingDown(AppError):
    """The server takes no new work."""

    code = "shutting_down"
    status = 503

    def __init__(self) -> None:
        super().__init__("The server is shutting down; try again in a moment.")
