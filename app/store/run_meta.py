"""What a run is beyond its entries, kept in its `meta` by a storage that knows nothing of it.

Under one reserved key, `verbatim`, stand the names of a run's columns. A run without it was saved by
somebody else, whole: it is completed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import JsonValue

from app.clock import format_millis, parse_instant
from app.conversation.outcomes import EndReason, RunStatus
from app.store.adapter import DEFAULT_GROUP, Claim, Keep, RunRecord, ThreadAttributes, TurnRow

KEY = "verbatim"
_MILLISECOND = 1_000_000
Meta = Mapping[str, JsonValue] | None


def write_run(run: RunRecord, thread: ThreadAttributes | None = None) -> dict[str, Any]:
    """The meta to store: the run's own, and the rest of the run; of a thread's first run the thread too."""
    kept: dict[str, Any] = {
        "seq": run.seq,
        "agent": run.agent,
        "sender_id": run.sender_id,
        "parent_run_id": run.parent_run_id,
        "status": run.status.value,
        "state": run.state,
        "input": run.input,
        "digest": run.digest,
        "branch_after_entry": run.branch_after_entry,
        "bare": run.meta is None,
    }
    if thread is not None:
        kept["thread"] = {
            "agent": thread.agent,
            "conversation_id": thread.conversation_id,
            "group_id": thread.group_id or DEFAULT_GROUP,
            "parent_thread_id": thread.parent_thread_id,
            "hidden": thread.hidden,
            "created_at": format_millis(thread.created_at),
        }
    return {**(run.meta or {}), KEY: kept}


def with_values(meta: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The stored meta of a run with other values of some columns."""
    return {**meta, KEY: {**meta[KEY], **values}}


def kept_of(meta: Meta) -> dict[str, Any]:
    """What is ours in a stored meta; empty if nothing is."""
    return cast(dict[str, Any], (meta or {}).get(KEY) or {})


def own_meta(meta: Meta) -> Meta:
    """The meta of the run without what is ours."""
    if meta is None or KEY not in meta:
        return meta
    rest = {name: value for name, value in meta.items() if name != KEY}
    return None if not rest and kept_of(meta).get("bare") else rest


def status_of_turn(turn: TurnRow) -> RunStatus:
    """Where the run stands by what was stored of it."""
    return RunStatus(kept_of(turn.meta).get("status", RunStatus.COMPLETED.value))


def read_turn(turn: TurnRow) -> TurnRow:
    """The turn as its readers get it."""
    previous = None if kept_of(turn.meta).get("first") else turn.previous_run_id
    return replace(turn, previous_run_id=previous, status=status_of_turn(turn), meta=own_meta(turn.meta))


def standing(turns: Sequence[TurnRow], following: TurnRow | None = None) -> list[TurnRow]:
    """What of these stored turns stands on the branch that ends at the last of them, or at the one that
    follows it. A run that begins a branch hides those before it, one that begins inside a run cuts that."""
    branch: list[TurnRow] = []
    for turn in reversed(turns):
        kept = {} if following is None else kept_of(following.meta)
        if kept.get("first"):
            break
        after = kept.get("branch_after_entry")
        following = turn
        branch.append(turn if after is None else _cut(turn, after))
    return branch[::-1]


def _cut(turn: TurnRow, after: str) -> TurnRow:
    """The turn up to an entry; all of it if there is no such entry."""
    places = [at for at, entry in enumerate(turn.entries, 1) if entry.id == after]
    return replace(turn, entries=turn.entries[: places[0]]) if places else turn


def read_runs(thread_id: str, turns: Sequence[TurnRow]) -> list[RunRecord]:
    """The runs of a branch. One that was saved from outside carries the state on."""
    records: list[RunRecord] = []
    for turn in turns:
        left = records[-1].state if records else None
        records.append(read_run(thread_id, turn, left))
    return records


def read_run(thread_id: str, turn: TurnRow | RunRecord, left: JsonValue = None) -> RunRecord:
    """The record of a stored run; `left` is the state before it."""
    kept = kept_of(turn.meta)
    status = RunStatus(kept.get("status", RunStatus.COMPLETED.value))
    ended_at = kept.get("ended_at")
    return RunRecord(
        seq=kept.get("seq") or number_at(turn.created_at),
        id=turn.run_id if isinstance(turn, TurnRow) else turn.id,
        thread_id=thread_id,
        agent=kept.get("agent", "assistant"),
        sender_id=kept.get("sender_id"),
        previous_run_id=None if kept.get("first") else turn.previous_run_id,
        parent_run_id=kept.get("parent_run_id"),
        status=status,
        end_reason=kept.get("end_reason") if kept else EndReason.DONE.value,
        epoch=1,
        state=kept.get("state", left),
        meta=own_meta(turn.meta),
        input=kept.get("input"),
        interrupts=kept.get("interrupts", []),
        usage=kept.get("usage", []),
        error=kept.get("error"),
        digest=kept.get("digest"),
        created_at=turn.created_at,
        ended_at=parse_instant(ended_at) if ended_at else None if kept else turn.created_at,
        branch_after_entry=kept.get("branch_after_entry"),
        resumed_by=kept.get("resumed_by"),
        result=kept.get("result"),
    )


def read_attributes(thread_id: str, first: TurnRow) -> ThreadAttributes:
    """What the thread was made with, by its first run; defaults if that was saved from outside."""
    kept: dict[str, Any] | None = kept_of(first.meta).get("thread")
    if kept is None:
        return ThreadAttributes("assistant", first.created_at, conversation_id=thread_id)
    values: dict[str, Any] = {**kept, "created_at": parse_instant(kept["created_at"])}
    return ThreadAttributes(**values)


def number_at(created_at: int) -> int:
    """A run's number by its time: a later process gives out higher ones, unless its clock was set back."""
    return max(1, created_at // _MILLISECOND)


def opened(claim: Claim, seq: int, previous: RunRecord | None) -> RunRecord:
    """The run that a claim starts behind another, with what that left where the claim keeps it."""
    state, meta = (None, None) if previous is None else (previous.state, previous.meta)
    return RunRecord(
        seq=seq,
        id=claim.run_id,
        thread_id=claim.thread_id,
        agent=claim.agent,
        sender_id=claim.sender_id,
        previous_run_id=None if previous is None else previous.id,
        parent_run_id=claim.parent_run_id,
        status=RunStatus.RUNNING,
        end_reason=None,
        epoch=1,
        state=state if isinstance(claim.state, Keep) else claim.state,
        meta=meta if isinstance(claim.meta, Keep) else claim.meta,
        input=claim.input,
        interrupts=[],
        usage=[],
        error=None,
        digest=claim.digest,
        created_at=claim.created_at,
        ended_at=None,
        branch_after_entry=claim.branch_after_entry,
    )
