"""What a start finds of the last one: runs whose process is gone."""

import logging
from collections.abc import Sequence

from app.agent.pairing import unanswered_calls, waiting_calls
from app.clock import Clock
from app.conversation.blocks import ToolCall
from app.conversation.entries import MessageEntry
from app.conversation.messages import Message
from app.conversation.outcomes import EndReason, RunEnd
from app.conversation.recall import EVERYTHING
from app.conversation.views import model_view
from app.runs.held import held_in, unsaid
from app.runs.recorder import Renderer, call_results, new_entries
from app.store.adapter import RunRecord, Store

logger = logging.getLogger(__name__)


async def settle_abandoned(store: Store, renderer: Renderer, clock: Clock) -> int:
    """Ends every run found running: failed, by a restart; its open calls get results and its thread is free.

    Only the owner of the database may call this, before it takes work. Returns how many runs there were.
    """
    abandoned = await store.live_runs()
    for namespace, run in abandoned:
        await settle_cut(store, renderer, clock, namespace, run)
    return len(abandoned)


async def settle_cut(store: Store, renderer: Renderer, clock: Clock, namespace: str, run: RunRecord) -> None:
    """Ends one run whose process is gone."""
    said = model_view(row.entry for row in await store.run_entries(namespace, run.id))
    calls = await _open_calls(store, namespace, run, said)
    results = call_results(calls, EndReason.SERVER_RESTART, run.agent, clock)
    late = [*map(MessageEntry, results), *unsaid(held_in(run.input), said)]
    entries = new_entries(late, renderer)
    end = RunEnd.by(EndReason.SERVER_RESTART)
    await store.finish(namespace, run.id, end, clock.now(), entries=entries)
    logger.warning("run %s of thread %s was cut by a restart", run.id, run.thread_id)


async def _open_calls(
    store: Store, namespace: str, run: RunRecord, said: Sequence[Message]
) -> list[ToolCall]:
    """The run's own calls without a result; of one that took up a paused run, those that waited there too."""
    if run.previous_run_id is None:
        return unanswered_calls(said)
    previous = await store.get_run(namespace, run.thread_id, run.previous_run_id)
    if previous is None or previous.resumed_by != run.id:
        return unanswered_calls(said)
    past = model_view(await store.recall(namespace, run.id, EVERYTHING))
    return waiting_calls([*past, *said])
