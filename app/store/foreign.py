"""The whole store over somebody's own `ConversationStore`: what it lacks is made here or not offered."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Never

from app.clock import Instant
from app.conversation import views
from app.conversation.entries import StoredEntry
from app.conversation.outcomes import RunStatus
from app.conversation.recall import Recall
from app.errors import InvalidInput, NotFound, NotSupported
from app.store.adapter import (
    EntryRow,
    HeadRecord,
    MessagePage,
    RunRecord,
    RunSave,
    ThreadAttributes,
    ThreadLister,
    ThreadPage,
    ThreadPatch,
    ThreadQuery,
    ThreadRecord,
    TranscriptPage,
    TranscriptPageReader,
    TurnRow,
)
from app.store.cursors import check_limit
from app.store.foreign_branches import storage_errors
from app.store.foreign_ledger import ForeignLedger
from app.store.paging import newest_rows, newest_turns, read_place, rows_before, shown_rows
from app.store.run_meta import KEY, kept_of, read_attributes, read_run, read_runs, read_turn, standing


@dataclass(frozen=True, slots=True)
class _Page:
    namespace: str
    thread_id: str
    limit: int
    before: str | None
    run_id: str | None


class ForeignStore(ForeignLedger):
    """Implements `app.store.adapter.Store` for one process. Threads are known by their runs: an empty one
    cannot be made, and none can be changed or deleted (NotSupported). Runs are those of the head's branch.
    """

    async def save(self, save: RunSave) -> None:
        """Passes it on. Where it replaces the meta of a run, what is ours stays in it."""
        if save.meta is not None:
            stored = await self._turn(save.namespace, save.thread_id, save.run_id)
            kept = kept_of(stored.meta) if stored is not None else None
            if kept:
                save = replace(save, meta={**save.meta, KEY: {**kept, "bare": False}})
        with storage_errors():
            await self._adapter.save(replace(save, entries=views.stored_view(save.entries)))

    async def load(
        self, namespace: str, thread_id: str, previous_run_id: str | None = None
    ) -> Sequence[TurnRow]:
        with storage_errors():
            turns = await self._adapter.load(namespace, thread_id, previous_run_id)
        return [read_turn(turn) for turn in standing(turns)]

    async def transcript(
        self, namespace: str, thread_id: str, run_id: str | None = None
    ) -> Sequence[TurnRow]:
        return [read_turn(turn) for turn in await self._branch(namespace, thread_id, run_id)]

    async def transcript_page(
        self,
        namespace: str,
        thread_id: str,
        *,
        limit: int = 50,
        before_run_id: str | None = None,
        run_id: str | None = None,
    ) -> TranscriptPage:
        check_limit(limit)
        if isinstance(self._adapter, TranscriptPageReader):
            asked = _Page(namespace, thread_id, limit, before_run_id, run_id)
            return await self._native_page(self._adapter, asked)
        branch = await self._branch(namespace, thread_id)
        turns = branch if run_id is None else await self._branch(namespace, thread_id, run_id)
        if before_run_id is not None:
            turns = await self._turns_before(namespace, thread_id, before_run_id)
        rows, following = newest_turns(turns, limit)
        latest = read_runs(thread_id, branch)[-1] if branch else None
        return TranscriptPage([read_turn(turn) for turn in rows], following, latest)

    async def _native_page(self, adapter: TranscriptPageReader, asked: _Page) -> TranscriptPage:
        """A page that the storage made. The run it ends before may cut the last turn of it."""
        following: TurnRow | None = None
        with storage_errors():
            page = await adapter.transcript_page(
                asked.namespace,
                asked.thread_id,
                limit=asked.limit,
                before_run_id=asked.before,
                run_id=asked.run_id,
            )
            if asked.before is not None and page.rows:
                behind = await adapter.transcript_page(
                    asked.namespace, asked.thread_id, limit=1, run_id=asked.before
                )
                following = behind.rows[-1]
        latest = None if page.latest is None else read_run(asked.thread_id, page.latest, page.latest.state)
        rows = [read_turn(turn) for turn in standing(page.rows, following)]
        is_first = not rows or rows[0].previous_run_id is None
        return TranscriptPage(rows, None if is_first else page.next_before_run_id, latest)

    async def _turns_before(self, namespace: str, thread_id: str, run_id: str) -> Sequence[TurnRow]:
        turns: Sequence[TurnRow] = ()
        with suppress(NotFound):
            turns = await self._branch(namespace, thread_id, run_id)
        if not turns:
            raise InvalidInput(f"before_run_id is no run of thread {thread_id}.", field="before_run_id")
        return turns[:-1]

    async def messages(
        self,
        namespace: str,
        thread_id: str,
        *,
        renderer: int,
        limit: int | None = None,
        before: str | None = None,
        run_id: str | None = None,
    ) -> MessagePage:
        """Renderings are not kept by a storage of somebody's own: rows hold entries."""
        if limit is not None:
            check_limit(limit)
        if before is None:
            return newest_rows(shown_rows(await self._branch(namespace, thread_id, run_id)), limit)
        if run_id is not None:
            await self._branch(namespace, thread_id, run_id)
        place = read_place(before)
        try:
            turns = await self._branch(namespace, thread_id, place[0])
        except NotFound:
            turns = ()
        return newest_rows(rows_before(shown_rows(turns), place), limit)

    async def list_threads(self, namespace: str, query: ThreadQuery) -> ThreadPage:
        """NotSupported if the storage lists none. A thread's status is the storage's word, or running."""
        adapter = self._adapter
        if not isinstance(adapter, ThreadLister):
            raise NotSupported("The configured storage does not list threads.")
        check_limit(query.limit)
        with storage_errors():
            page = await adapter.list_threads(namespace, query)
        return ThreadPage([self._listed(namespace, thread) for thread in page.threads], page.next_cursor)

    def _listed(self, namespace: str, thread: ThreadRecord) -> ThreadRecord:
        if self._live_of(namespace, thread.id) is None:
            return thread
        return replace(thread, last_run_status=RunStatus.RUNNING)

    async def create_thread(
        self, namespace: str, thread_id: str, thread: ThreadAttributes, title: str | None = None
    ) -> ThreadRecord:
        _not_offered("make an empty thread; the first run makes it")

    async def patch_thread(
        self, namespace: str, thread_id: str, patch: ThreadPatch, at: Instant
    ) -> ThreadRecord | None:
        _not_offered("change threads")

    async def delete_thread(self, namespace: str, thread_id: str, at: Instant) -> bool:
        _not_offered("delete threads")

    async def fork_thread(
        self,
        namespace: str,
        thread_id: str,
        new_thread_id: str,
        thread: ThreadAttributes,
        *,
        run_id: str | None = None,
        title: str | None = None,
    ) -> ThreadRecord:
        _not_offered("fork threads")

    async def get_thread(self, namespace: str, thread_id: str) -> ThreadRecord | None:
        return _thread(thread_id, await self._branch(namespace, thread_id))

    async def head(
        self, namespace: str, thread_id: str, entry_ids: Sequence[str], *, run_id: str | None = None
    ) -> HeadRecord:
        """Known are the entries of the asked branch, of the head's, and what either of them cut away: a
        storage tells of no other branch."""
        turns = await self._branch(namespace, thread_id)
        if not turns and run_id is None:
            return HeadRecord(None, None)
        thread, stored = _thread(thread_id, turns), list(await self._stored(namespace, thread_id))
        if run_id is not None:
            turns = await self._branch(namespace, thread_id, run_id)
            stored += await self._stored(namespace, thread_id, run_id)
        if not turns:
            raise NotFound(f"Thread {thread_id} has no run {run_id}.", field="run_id")
        asked = set(entry_ids)
        places = (*stored, *turns)  # the asked branch last, and of each branch the newest run
        known = {entry.id: turn.run_id for turn in places for entry in turn.entries if entry.id in asked}
        head = read_runs(thread_id, turns)[-1]
        self._remember(namespace, head.id, thread_id)
        return HeadRecord(thread, head, known)

    async def recall(self, namespace: str, run_id: str, recall: Recall) -> Sequence[StoredEntry]:
        """All that the storage gives to a model, before a run that this process claimed or read."""
        thread_id = self._places.get((namespace, run_id))
        if thread_id is None:
            raise NotFound(f"There is no run {run_id}.")
        turns = await self.load(namespace, thread_id, run_id)
        return [entry for turn in turns[:-1] for entry in turn.entries]

    async def get_run(self, namespace: str, thread_id: str, run_id: str) -> RunRecord | None:
        try:
            turns = await self._branch(namespace, thread_id, run_id)
        except NotFound:
            return None
        if not turns:
            return None
        self._remember(namespace, run_id, thread_id)
        return read_runs(thread_id, turns)[-1]

    async def runs(self, namespace: str, thread_id: str) -> Sequence[RunRecord]:
        return read_runs(thread_id, await self._branch(namespace, thread_id))

    async def run_entries(self, namespace: str, run_id: str) -> Sequence[EntryRow]:
        """Of a run that was claimed or read by this process before; numbers are places in the run."""
        thread_id = self._places.get((namespace, run_id))
        turn = None if thread_id is None else await self._turn(namespace, thread_id, run_id)
        entries = () if turn is None else turn.entries
        return [EntryRow(number, run_id, entry) for number, entry in enumerate(entries, 1)]

    async def close(self) -> None:
        """Closes the storage. The server does not do this with one that it was handed."""
        await self._adapter.close()


def _not_offered(what: str) -> Never:
    raise NotSupported(f"The configured storage does not {what}.")


def _thread(thread_id: str, turns: Sequence[TurnRow]) -> ThreadRecord | None:
    """The thread by its branch; None for one without runs, which nobody keeps."""
    if not turns:
        return None
    made, runs = read_attributes(thread_id, turns[0]), read_runs(thread_id, turns)
    said = views.model_view(entry for turn in turns for entry in turn.entries)
    return ThreadRecord(
        id=thread_id,
        agent=made.agent,
        conversation_id=made.conversation_id,
        group_id=made.group_id,
        parent_thread_id=made.parent_thread_id,
        hidden=made.hidden,
        title=views.title(said),
        archived_at=None,
        head_run_id=runs[-1].id,
        run_count=len(runs),
        message_count=len(views.reader_view(said)),
        last_run_status=runs[-1].status,
        created_at=made.created_at,
        updated_at=max(run.ended_at or run.created_at for run in runs),
    )
