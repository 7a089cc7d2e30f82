"""A finished run told again from storage, for a follower that comes after its log is gone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from app.agent.events import Appended, MessageDone, RunDone, RunEvent, RunOpened, ToolDone
from app.agent.pairing import unanswered_calls
from app.agui.resume import open_interrupts
from app.agui.translate import Translator
from app.clock import Instant
from app.conversation.entries import CustomEntry, MessageEntry, StoredEntry
from app.conversation.messages import Message, Role, Usage
from app.conversation.outcomes import EndReason, RunEnd, RunError, RunStatus, error_of
from app.conversation.views import model_view, reader_sees
from app.frames import Frame
from app.store.adapter import RunRecord

_FALLBACK = {
    RunStatus.STOPPED: EndReason.STOP_REQUESTED,
    RunStatus.FAILED: EndReason.INTERNAL_ERROR,
    RunStatus.PAUSED: EndReason.INTERRUPTED,
}


class _StoredTime:
    """Tells the time of what is being told, so that a replay is the same whenever it is made."""

    def __init__(self, start: Instant) -> None:
        self._now = start

    def now(self) -> Instant:
        return self._now

    def reach(self, instant: Instant | None) -> None:
        self._now = max(self._now, instant or self._now)


def replay(run: RunRecord, entries: Sequence[StoredEntry]) -> list[Frame]:
    """The run's frames, each message whole, with the ids and metadata of the live ones.

    `entries` are the run's own, in order. A fresh client ends with the messages that one has who was there.
    What was not stored is not told: sub-agents, progress, and each change of the state.
    """
    time = _StoredTime(run.created_at)
    translate = Translator(time).translate
    frames = list(translate(_opened(run, entries)))
    for entry in entries:
        time.reach(entry.message.created_at if isinstance(entry, MessageEntry) else entry.created_at)
        frames += translate(_event(entry))
    time.reach(run.ended_at)
    frames += translate(RunDone(_end(run, model_view(entries))))
    return frames


def _opened(run: RunRecord, entries: Sequence[StoredEntry]) -> RunOpened:
    return RunOpened(
        thread_id=run.thread_id,
        run_id=run.id,
        agent=run.agent,
        accepted=tuple(_opening(entries)),
        state=run.state,
        state_differs=run.state not in (None, {}),
        parent_run_id=run.parent_run_id,
        replayed=True,
    )


def _opening(entries: Iterable[StoredEntry]) -> list[Message | CustomEntry]:
    """What stands before the first word of a model: results of calls that were open, too, whoever gave them.
    A client appends what it is told there, so records go behind the results that come next, as in hydration.
    """
    opening: list[Message | CustomEntry] = []
    records: list[Message | CustomEntry] = []
    for entry in entries:
        if isinstance(entry, CustomEntry):
            records.append(entry)
        elif entry.message.role is Role.ASSISTANT:
            break
        elif reader_sees(entry.message):
            if entry.message.role is Role.USER:
                opening += records
                records = []
            opening.append(entry.message)
    return [*opening, *records]


def _event(entry: StoredEntry) -> RunEvent:
    if not isinstance(entry, MessageEntry):
        return Appended(entry)
    if entry.message.role is Role.ASSISTANT:
        return MessageDone(entry.message)
    return ToolDone(entry.message) if entry.message.role is Role.TOOL_RESULT else Appended(entry)


def _end(run: RunRecord, messages: Sequence[Message]) -> RunEnd:
    """The stored end. A run that is not at its end yet, or names no reason we know, ends by its status. Of
    its questions only those are told that are still open."""
    try:
        reason = EndReason(run.end_reason or "")
    except ValueError:
        reason = _FALLBACK.get(run.status, EndReason.DONE)
    pending = unanswered_calls(messages) if reason is EndReason.CLIENT_TOOLS else ()
    return RunEnd(
        reason,
        _error(run.error) or error_of(reason),
        tuple(_usage(run.usage)),
        interrupts=open_interrupts(run),
        pending_calls=tuple(call.id for call in pending),
        result=run.result,
    )


def _error(stored: Mapping[str, JsonValue] | None) -> RunError | None:
    if not stored:
        return None
    return RunError(str(stored.get("code", "")), str(stored.get("message", "")))


def _usage(stored: Sequence[JsonValue]) -> Iterable[tuple[str | None, str | None, Usage]]:
    """Reads `{provider?, model?, …token counts}` as runs store it."""
    for item in stored:
        if isinstance(item, dict):
            counts = {key: value for key, value in item.items() if key not in ("provider", "model")}
            provider, model = item.get("provider"), item.get("model")
            yield cast(str | None, provider), cast(str | None, model), Usage.model_validate(counts)
