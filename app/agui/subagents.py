"""Sub-agents on the wire: opened, and closed once. 0.x clients are told nothing of them.

What a sub-agent says stays in the stream of its own run, whose thread the opening names.
"""

from app.agent.events import SubagentEnded, SubagentStarted
from app.agui.brackets import Brackets, Members
from app.agui.variants import for_current
from app.conversation.outcomes import EndReason, RunEnd, RunError, RunStatus, error_of
from app.frames import Frame

_STOPPED = RunError("CANCELLED", "The agent was stopped before it was done.")
_LEFT_OPEN = RunError("UNFINISHED", "The run ended before this agent did.")


class Subagents:
    """Those of one run. A run id is told once: clients refuse one that comes again."""

    def __init__(self, brackets: Brackets) -> None:
        self._brackets = brackets
        self._is_open: dict[str, bool] = {}

    def start(self, event: SubagentStarted) -> list[Frame]:
        if event.run_id in self._is_open:
            return []
        self._is_open[event.run_id] = True
        members: Members = {
            "subagentRunId": event.run_id,
            "name": event.name,
            "description": event.description,
            "parentToolCallId": event.call_id,
            "metadata": {"threadId": event.thread_id},
        }
        if not event.description:
            del members["description"]
        return [for_current("SUBAGENT_STARTED", members, self._brackets)]

    def end(self, event: SubagentEnded) -> list[Frame]:
        end = event.end
        if end.status is RunStatus.COMPLETED:
            return self._finish(event.run_id, _success(end))
        if end.status is RunStatus.PAUSED:
            return self._finish(event.run_id, {"outcome": _suspended(end)})
        if end.status is RunStatus.STOPPED:
            return self._fail(event.run_id, _STOPPED)
        return self._fail(
            event.run_id, end.error or error_of(end.reason) or error_of(EndReason.INTERNAL_ERROR)
        )

    def close_all(self) -> list[Frame]:
        """Ends those that are still open, the last first."""
        left = [run_id for run_id, is_open in self._is_open.items() if is_open]
        return [frame for run_id in reversed(left) for frame in self._fail(run_id, _LEFT_OPEN)]

    def _finish(self, run_id: str, members: Members) -> list[Frame]:
        return self._close(run_id, "SUBAGENT_FINISHED", members)

    def _fail(self, run_id: str, error: RunError | None) -> list[Frame]:
        error = error or _LEFT_OPEN
        return self._close(run_id, "SUBAGENT_ERROR", {"message": error.message, "code": error.code})

    def _close(self, run_id: str, kind: str, members: Members) -> list[Frame]:
        if not self._is_open.get(run_id):
            return []
        self._is_open[run_id] = False
        return [for_current(kind, {"subagentRunId": run_id, **members}, self._brackets)]


def _success(end: RunEnd) -> Members:
    success: Members = {"outcome": {"type": "success"}}
    return success if end.result is None else {**success, "result": end.result}


def _suspended(end: RunEnd) -> Members:
    ids = [interrupt.id for interrupt in end.interrupts]
    suspended: Members = {"type": "suspended"}
    return {**suspended, "interruptIds": ids} if ids else suspended
