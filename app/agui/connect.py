"""How a thread stands, as the beginning or all of a legal stream: it brings any client to the same state.

AG-UI: RUN_STARTED, STATE_SNAPSHOT where there is state, and MESSAGES_SNAPSHOT with all messages. For a thread
at rest the end follows, with the outcome of the latest run, so that its open questions and calls are
restored; for one that is live, its results come behind its other messages, what is open is opened again, and
then the run goes on.
"""

from collections.abc import Sequence

import orjson
from pydantic import JsonValue

from app.agent.events import RunOpened
from app.agui.brackets import Brackets
from app.agui.encoding import encode
from app.agui.ends import opening, terminal
from app.agui.fold import Fold
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
    opened = _opened(thread_id, run_id, None if latest is None else latest.state)
    return [
        *opening(opened, brackets),
        brackets.event("MESSAGES_SNAPSHOT", {"messages": orjson.Fragment(messages)}),
        terminal(opened, _end(latest, tuple(pending_calls)), brackets),
    ]


def connect_live(thread_id: str, run_id: str, fold: Fold, *, clock: Clock) -> list[Frame]:
    """The frames for a client that joins a live run under `run_id`, at the moment of `fold`, which holds the
    thread from its beginning. What the run tells from there on is to follow."""
    brackets = Brackets(clock)
    return [
        *opening(_opened(thread_id, run_id, fold.state), brackets),
        brackets.event("MESSAGES_SNAPSHOT", {"messages": fold.messages()}),
        *(brackets.event(event.pop("type"), event) for event in fold.told_again()),
    ]


def renamed(event: bytes, run_id: str) -> bytes:
    """The last event of a run for a client that asked under an id of its own. RUN_ERROR names no run."""
    members = orjson.loads(event)
    if "runId" not in members:
        return event
    return encode({**members, "runId": run_id})


def _opened(thread_id: str, run_id: str, state: JsonValue) -> RunOpened:
    return RunOpened(thread_id, run_id, agent="", state=state, state_differs=state not in (None, {}))


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
