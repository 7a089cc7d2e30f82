"""The first and the last words of a run on the wire."""

from ag_ui.core import PROTOCOL_VERSION

from app.agent.events import RunOpened
from app.agui.activities import activity_message
from app.agui.brackets import Brackets, Members
from app.agui.interrupts import wire_interrupt
from app.agui.messages import WireMessage, wire_messages
from app.agui.metadata import message_metadata
from app.agui.results import result_frame
from app.agui.shared_state import state_frame
from app.agui.variants import variants
from app.conversation.entries import CustomEntry
from app.conversation.messages import Message, Role, Usage
from app.conversation.outcomes import EndReason, RunEnd, RunError, RunStatus, error_of
from app.conversation.views import reader_sees, reader_view
from app.frames import Frame

_TOKENS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "reasoningTokens": "reasoning_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "cacheWriteInputTokens": "cache_write_input_tokens",
}


def opening(run: RunOpened, brackets: Brackets) -> list[Frame]:
    """RUN_STARTED with what was accepted, results of calls that nobody answered, the server's metadata on
    what was said, and the state where it differs."""
    frames = [_started(run, brackets)]
    frames += [result_frame(message, brackets) for message in reader_view(run.settled)]
    for item in run.accepted:
        if isinstance(item, Message) and reader_sees(item):
            frames += brackets.empty_text(item.id, _role(item), message_metadata(item))
    if run.state_differs:
        frames.append(state_frame(run.state, brackets))
    return frames


def _started(run: RunOpened, brackets: Brackets) -> Frame:
    def started(*, legacy: bool) -> Members:
        shown = [
            one for item in (*run.accepted, *run.held) for one in _accepted_messages(item, legacy=legacy)
        ]
        ids: Members = {"threadId": run.thread_id, "runId": run.run_id}
        members: Members = {**ids, "protocolVersion": PROTOCOL_VERSION}
        if run.parent_run_id is not None:
            members["parentRunId"] = run.parent_run_id
        # 0.x clients die of an input without these two lists.
        return {**members, "input": {**ids, "messages": shown, "tools": [], "context": []}}

    return variants("RUN_STARTED", started(legacy=False), started(legacy=True), brackets)


def _role(message: Message) -> str:
    """The role that a bracket names. There is none for a client's own result, which needs one all the same:
    another TOOL_CALL_RESULT would make a second message of it. Clients keep the role of a message they hold.
    """
    return "user" if message.role is Role.USER else "assistant"


def _accepted_messages(item: Message | CustomEntry, *, legacy: bool) -> list[WireMessage]:
    if isinstance(item, CustomEntry):
        return [activity_message(item)]
    return wire_messages(item, legacy=legacy)


def terminal(run: RunOpened | None, end: RunEnd, brackets: Brackets) -> Frame:
    """The last event. A run that never opened on the wire can only end there as an error."""
    usage = _usage(end)
    if run is None or end.status is RunStatus.FAILED:
        return brackets.event("RUN_ERROR", {**_error(end), **usage})
    finished: Members = {"threadId": run.thread_id, "runId": run.run_id, **usage}
    current, legacy = _outcome(end)
    return variants("RUN_FINISHED", {**finished, **current}, {**finished, **legacy}, brackets)


def _outcome(end: RunEnd) -> tuple[Members, Members]:
    """How a run ended that did not fail, for either generation: 0.x clients die of the outcome `cancelled`
    and of `pendingToolCallIds`."""
    if end.status is RunStatus.STOPPED:
        return {"outcome": {"type": "cancelled"}}, {"metadata": {"finishReason": "cancelled"}}
    if end.interrupts and end.status is RunStatus.PAUSED:
        asked = [wire_interrupt(interrupt) for interrupt in end.interrupts]
        paused: Members = {"outcome": {"type": "interrupt", "interrupts": asked}}
        return paused, paused
    done: Members = {} if end.result is None else {"result": end.result}
    if not end.pending_calls:
        return done, done
    return {**done, "outcome": {"type": "success", "pendingToolCallIds": list(end.pending_calls)}}, done


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
