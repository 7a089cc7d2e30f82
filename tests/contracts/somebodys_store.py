"""A storage as somebody would write it who needs no more than his conversations back: dicts in memory.

The variants add the optional Protocols one by one.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.conversation import views
from app.conversation.outcomes import RunStatus
from app.errors import Conflict, InvalidInput, NotFound, StoreClosed
from app.store.adapter import (
    RunRecord,
    RunSave,
    ThreadPage,
    ThreadQuery,
    ThreadRecord,
    TranscriptPage,
    TurnRow,
)
from app.store.paging import newest_turns


class SomebodysStore:
    """The smallest thing: save, load, close."""

    def __init__(self) -> None:
        self.turns: dict[tuple[str, str], TurnRow] = {}
        self.thread_of: dict[tuple[str, str], str] = {}
        self.heads: dict[tuple[str, str], str] = {}
        self.made: dict[tuple[str, str], RunSave] = {}
        self.loads = 0
        self.closed = False

    async def save(self, save: RunSave) -> None:
        self._must_be_open()
        key, thread = (save.namespace, save.run_id), (save.namespace, save.thread_id)
        if self.thread_of.setdefault(key, save.thread_id) != save.thread_id:
            raise Conflict("This run belongs to another thread.", field="runId")
        old = self.turns.get(key)
        if old is None:
            previous = save.previous_run_id or self.heads.get(thread)
            old = TurnRow(save.run_id, previous, RunStatus.COMPLETED, save.created_at, None, ())
            self.heads[thread] = save.run_id
            self.made.setdefault(thread, save)
        meta = old.meta if save.meta is None else save.meta
        self.turns[key] = replace(old, meta=meta, entries=(*old.entries, *save.entries))

    async def load(
        self, namespace: str, thread_id: str, previous_run_id: str | None = None
    ) -> Sequence[TurnRow]:
        self._must_be_open()
        self.loads += 1
        return self._branch(namespace, thread_id, previous_run_id)

    async def close(self) -> None:
        self.closed = True

    def _branch(self, namespace: str, thread_id: str, run_id: str | None) -> list[TurnRow]:
        if run_id is not None and self.thread_of.get((namespace, run_id)) != thread_id:
            raise NotFound("There is no such run on this thread.", field="run_id")
        at = run_id or self.heads.get((namespace, thread_id))
        found: list[TurnRow] = []
        while at is not None:
            found.append(self.turns[namespace, at])
            at = found[-1].previous_run_id
        return found[::-1]

    def _must_be_open(self) -> None:
        if self.closed:
            raise StoreClosed("The store is closed.")


class Reading(SomebodysStore):
    """Gives transcripts too."""

    async def transcript(
        self, namespace: str, thread_id: str, run_id: str | None = None
    ) -> Sequence[TurnRow]:
        self._must_be_open()
        return self._branch(namespace, thread_id, run_id)


class Paging(SomebodysStore):
    """Pages transcripts too."""

    pages = 0

    async def transcript_page(
        self,
        namespace: str,
        thread_id: str,
        *,
        limit: int = 50,
        before_run_id: str | None = None,
        run_id: str | None = None,
    ) -> TranscriptPage:
        self._must_be_open()
        self.pages += 1
        whole = self._branch(namespace, thread_id, None)
        turns = self._branch(namespace, thread_id, run_id)
        if before_run_id is not None:
            if self.thread_of.get((namespace, before_run_id)) != thread_id:
                raise InvalidInput("No run of this thread.", field="before_run_id")
            turns = self._branch(namespace, thread_id, before_run_id)[:-1]
        rows, following = newest_turns(turns, limit)
        return TranscriptPage(rows, following, _record(thread_id, whole[-1]) if whole else None)


class Listing(SomebodysStore):
    """Lists threads too: all on one page, newest first."""

    async def list_threads(self, namespace: str, query: ThreadQuery) -> ThreadPage:
        self._must_be_open()
        found = [self._thread(key) for key in self.heads if key[0] == namespace]
        shown = [thread for thread in found[::-1] if query.include_hidden or not thread.hidden]
        return ThreadPage(shown[: query.limit], None)

    def _thread(self, key: tuple[str, str]) -> ThreadRecord:
        turns, made = self._branch(*key, None), self.made[key]
        said = views.model_view(entry for turn in turns for entry in turn.entries)
        return ThreadRecord(
            id=key[1],
            agent=made.agent,
            conversation_id=made.conversation_id,
            group_id=made.group_id,
            parent_thread_id=made.parent_thread_id,
            hidden=made.hidden,
            title=views.title(said),
            archived_at=None,
            head_run_id=self.heads[key],
            run_count=len(turns),
            message_count=len(views.reader_view(said)),
            last_run_status=turns[-1].status,
            created_at=made.created_at,
            updated_at=turns[-1].created_at,
        )


class Everything(Reading, Paging, Listing):
    """All three."""


def _record(thread_id: str, turn: TurnRow) -> RunRecord:
    return RunRecord(
        seq=1,
        id=turn.run_id,
        thread_id=thread_id,
        agent="assistant",
        sender_id=None,
        previous_run_id=turn.previous_run_id,
        parent_run_id=None,
        status=turn.status,
        end_reason=None,
        epoch=1,
        state=None,
        meta=turn.meta,
        input=None,
        interrupts=(),
        usage=(),
        error=None,
        digest=None,
        created_at=turn.created_at,
        ended_at=None,
    )


VARIANTS = (SomebodysStore, Reading, Paging, Listing, Everything)
