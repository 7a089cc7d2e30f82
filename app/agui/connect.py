"""How a thread at rest stands, as a legal stream: it brings any client to the same state.

AG-UI: RUN_STARTED, STATE_SNAPSHOT where there is state, MESSAGES_SNAPSHOT with all messages, and an end with
the outcome of the latest run, so that its open questions and calls are restored.
"""

from collections.abc import Sequence

import orjson

from app.agent.events import RunOpened
from app.agui.brackets import Brackets
from app.agui.ends import opening, terminal
from app.agui.resume import open_interrupts
from app.clock import Clock
from app.conversation.outcomes import EndReason, RunEnd, RunError, RunStatus
from app.frames import Frame
from app.store.adapter import RunRecord


def connect(
    thread_id: str,
    run_id: str,
    latest: RunRecord | None,
    messages: bytes,
    *,
    pending_calls: Sequence[str] = (),
    clock: Clock,
) -> list[Frame]:
    """The frames for a client that asked under `run_id`.

    `latest` is the run that the shown branch ends in, at its end; None for a thread without runs. `messages`
    is a JSON array of all messages of that branch, as this client's generation reads them. The client has yet
    to answer `pending_calls`.
    """
    brackets = Brackets(clock)
    state = None if latest is None else latest.state
    opened = RunOpened(
        thread_id=thread_id,
        run_id=run_id,
        agent="" if latest is None else latest.agent,
        state=state,
        state_differs=state not in (None, {}),
    )
    snapshot = brackets.event("MESSAGES_SNAPSHOT", {"messages": orjson.Fragment(messages)})
    return [
        *opening(opened, brackets),
        snapshot,
        terminal(opened, _end(latest, tuple(pending_calls)), brackets),
    ]


def _end(latest: RunRecord | None, pending_calls: tuple[str, ...]) -> RunEnd:
    """The end of that run once more. Its tokens are not told again, for nothing was spent."""
    if latest is None:
        return RunEnd(EndReason.DONE)
    if latest.status is RunStatus.FAILED:
        return RunEnd(EndReason.INTERNAL_ERROR, _error(latest))
    if latest.status is RunStatus.STOPPED:
        return RunEnd(EndReason.STOP_REQUESTED)
    if interrupts := open_interrupts(latest):
        return RunEnd(EndReason.INTERRUPTED, interrupts=interrupts)
    reason = EndReason.CLIENT_TOOLS if pending_calls else EndReason.DONE
    return RunEnd(reason, pending_calls=pending_calls, result=latest.result)


def _error(run: RunRecord) -> RunError | None:
    stored = run.error or {}
    code, message = stored.get("code"), stored.get("message")
    return RunError(code, message) if isinstance(code, str) and isinstance(message, str) else None
