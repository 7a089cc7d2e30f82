"""The first and the last words of a run on the wire."""

from ag_ui.core import PROTOCOL_VERSION

from app.agent.events import RunOpened
from app.agui.brackets import Brackets, Members
from app.agui.messages import wire_messages
from app.agui.metadata import message_metadata
from app.conversation.messages import Message, Usage
from app.conversation.outcomes import EndReason, RunEnd, RunError, RunStatus, error_of
from app.conversation.views import reader_view
from app.frames import Frame, Variants

_TOKENS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "reasoningTokens": "reasoning_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "cacheWriteInputTokens": "cache_write_input_tokens",
}


def opening(run: RunOpened, brackets: Brackets) -> list[Frame]:
    """RUN_STARTED with what was accepted, the server's metadata on each, and the state where it differs."""
    accepted = reader_view(run.accepted)
    frames = [_started(run, accepted, brackets)]
    for message in accepted:
        frames += brackets.empty_text(message.id, "user", message_metadata(message))
    if run.state_differs:
        frames.append(brackets.event("STATE_SNAPSHOT", {"snapshot": {} if run.state is None else run.state}))
    return frames


def _started(run: RunOpened, accepted: list[Message], brackets: Brackets) -> Frame:
    def started(*, legacy: bool) -> Members:
        shown = [one for message in accepted for one in wire_messages(message, legacy=legacy)]
        ids: Members = {"threadId": run.thread_id, "runId": run.run_id}
        members: Members = {**ids, "protocolVersion": PROTOCOL_VERSION}
        if run.parent_run_id is not None:
            members["parentRunId"] = run.parent_run_id
        # 0.x clients die of an input without these two lists.
        return {**members, "input": {**ids, "messages": shown, "tools": [], "context": []}}

    return variants("RUN_STARTED", started(legacy=False), started(legacy=True), brackets)


def terminal(run: RunOpened | None, end: RunEnd, brackets: Brackets) -> Frame:
    """The last event. A run that never opened on the wire can only end there as an error."""
    usage = _usage(end)
    if run is None or end.status is RunStatus.FAILED:
        return brackets.event("RUN_ERROR", {**_error(end), **usage})
    finished: Members = {"threadId": run.thread_id, "runId": run.run_id, **usage}
    if end.status is not RunStatus.STOPPED:
        return brackets.event("RUN_FINISHED", finished)
    # 0.x clients die of the outcome `cancelled`.
    return variants(
        "RUN_FINISHED",
        {**finished, "outcome": {"type": "cancelled"}},
        {**finished, "metadata": {"finishReason": "cancelled"}},
        brackets,
    )


def variants(kind: str, current: Members, legacy: Members, brackets: Brackets) -> Frame:
    """One frame for all clients where both get the same."""
    frame = brackets.event(kind, current)
    return frame if current == legacy else Variants(frame, brackets.event(kind, legacy))


def _error(end: RunEnd) -> Members:
    error = end.error or error_of(end.reason) or error_of(EndReason.INTERNAL_ERROR)
    assert isinstance(error, RunError)
    return {"code": error.code, "message": error.message}


def _usage(end: RunEnd) -> Members:
    entries = [_tokens(provider, model, usage) for provider, model, usage in end.usage]
    return {"usage": entries} if entries else {}


def _tokens(provider: str | None, model: str | None, usage: Usage) -> Members:
    named: Members = {"provider": provider, "model": model}
    named.update((key, getattr(usage, name)) for key, name in _TOKENS.items())
    return {key: value for key, value in named.items() if value is not None}
