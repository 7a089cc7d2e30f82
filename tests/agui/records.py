"""Runs as a store gives them back."""

from app.conversation.outcomes import RunEnd, RunStatus
from app.store.adapter import RunRecord

MOMENT = 1_700_000_000_000_000_000


def record(end: RunEnd, *, status: RunStatus | None = None, reason: str | None = None) -> RunRecord:
    return RunRecord(
        seq=1,
        id="run",
        thread_id="thread",
        agent="assistant",
        sender_id="ann",
        previous_run_id=None,
        parent_run_id=None,
        status=status or end.status,
        end_reason=reason or end.reason.value,
        epoch=1,
        state={"n": 1},
        meta=None,
        input=None,
        interrupts=(),
        usage=[
            {"provider": provider, "model": model, **usage.model_dump(mode="json", by_alias=True)}
            for provider, model, usage in end.usage
        ],
        error={"code": end.error.code, "message": end.error.message} if end.error else None,
        digest=None,
        created_at=MOMENT,
        ended_at=MOMENT + 5_000_000,
    )
