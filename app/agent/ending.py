"""How a run comes to its end, and what is told of it."""

import logging
from collections.abc import Sequence

from pydantic import JsonValue

from app.agent.context import Stopped
from app.agent.hook_call import HookFailed
from app.agent.hooks import Abort
from app.agent.models.base import ModelError
from app.agent.pausing import by_call
from app.agent.tally import Cost
from app.agent.toolbox import NOT_RUN
from app.conversation.blocks import ToolCall
from app.conversation.interrupts import Interrupt
from app.conversation.messages import StopReason
from app.conversation.outcomes import CALLS_LEFT_OPEN, EndReason, RunEnd, RunError, error_of

_log = logging.getLogger(__name__)

_WHY_NOT_RUN = {
    EndReason.LENGTH: "This call was not run: the answer was cut by the model's token limit.",
    EndReason.LOOP_LIMIT: "This call was not run: the limit of model calls for one run was reached.",
    EndReason.TOKEN_BUDGET: "This call was not run: the run used up its token budget.",
    EndReason.MODEL_ERROR: "This call was not run: the model failed before its answer was complete.",
    EndReason.MODEL_TIMEOUT: "This call was not run: the model fell silent before its answer was complete.",
    EndReason.INTERNAL_ERROR: "This call has no result: something went wrong inside the server.",
    EndReason.HOOK_ABORTED: "This call has no result: a rule of the server ended the run.",
}


class Ending:
    """The end of one run, from the first sign of it on. `reason` is None while the run goes on."""

    def __init__(self, run_id: str) -> None:
        self.reason: EndReason | None = None
        self.result: JsonValue = None
        self._run_id = run_id
        self._error: RunError | None = None
        self._interrupts: tuple[Interrupt, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether the run is about to end because the model is content."""
        return self.reason is EndReason.DONE

    def judge(self, reason: StopReason) -> None:
        """What a complete answer means for the run."""
        if reason is StopReason.LENGTH:
            self.reason = EndReason.LENGTH
        elif reason in (StopReason.ERROR, StopReason.ABORTED):
            self.reason = EndReason.MODEL_ERROR

    def pause(self, interrupts: Sequence[Interrupt]) -> None:
        """The run waits for answers to these."""
        self.reason = EndReason.INTERRUPTED
        self._interrupts = tuple(interrupts)

    def cut_short(self, error: Exception) -> StopReason:
        """Ends the run by what broke it off, and tells what became of an answer that was under way."""
        if isinstance(error, Stopped):
            self.reason = error.reason
            return StopReason.ERROR if error.reason is EndReason.MODEL_TIMEOUT else StopReason.ABORTED
        if isinstance(error, Abort):
            self.reason, self._error = EndReason.HOOK_ABORTED, error.error
        elif isinstance(error, ModelError):
            _log.warning("model call failed in run %s: %s", self._run_id, error.public)
            self.reason = EndReason.MODEL_TIMEOUT if error.timeout else EndReason.MODEL_ERROR
            self._error = RunError(self.reason.value.upper(), error.public)
        elif isinstance(error, HookFailed):
            _log.error("run %s: %s", self._run_id, error, exc_info=error)
            self.reason = EndReason.INTERNAL_ERROR
        else:
            _log.error("run %s: the model's code failed", self._run_id, exc_info=error)
            self.reason = EndReason.INTERNAL_ERROR
        return StopReason.ERROR

    def why_not_run(self) -> str:
        """The result of a call that the end overtook, for the model."""
        return _WHY_NOT_RUN.get(self.reason or EndReason.INTERNAL_ERROR, NOT_RUN)

    def run_end(self, left: Sequence[ToolCall], costs: Sequence[Cost]) -> RunEnd:
        """What is stored and told. `left` are the calls without a result."""
        reason = self.reason or EndReason.INTERNAL_ERROR
        asked = by_call(self._interrupts)
        pending = [call.id for call in left if call.id not in asked] if reason in CALLS_LEFT_OPEN else []
        return RunEnd(
            reason,
            self._error or error_of(reason),
            tuple(costs),
            interrupts=self._interrupts if reason is EndReason.INTERRUPTED else (),
            pending_calls=tuple(pending),
            result=self.result if reason is EndReason.DONE else None,
        )
