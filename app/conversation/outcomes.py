"""The states of a run and the reasons for its end, as they are stored, shown and counted."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from app.conversation.interrupts import Interrupt
from app.conversation.messages import Usage


class RunStatus(StrEnum):
    """Where a run stands. On the wire a stopped run is called cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    MERGED = "merged"


class EndReason(StrEnum):
    """Why a run is no longer running."""

    DONE = "done"
    CLIENT_TOOLS = "client_tools"
    INTERRUPTED = "interrupted"
    STOP_REQUESTED = "stop_requested"
    CLIENT_LEFT = "client_left"
    REPLACED = "replaced"
    SHUTDOWN = "shutdown"
    SERVER_RESTART = "server_restart"
    LENGTH = "length"
    MODEL_ERROR = "model_error"
    MODEL_TIMEOUT = "model_timeout"
    LOOP_LIMIT = "loop_limit"
    RUN_TIMEOUT = "run_timeout"
    TOKEN_BUDGET = "token_budget"
    OUTPUT_INVALID = "output_invalid"
    HOOK_ABORTED = "hook_aborted"
    STORAGE_FAILED = "storage_failed"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class RunError:
    """What clients are told of a failure: a code of ours and a public sentence, never exception text."""

    code: str
    message: str


_STATUS = {
    EndReason.DONE: RunStatus.COMPLETED,
    EndReason.CLIENT_TOOLS: RunStatus.COMPLETED,
    EndReason.LENGTH: RunStatus.COMPLETED,
    EndReason.INTERRUPTED: RunStatus.PAUSED,
    EndReason.STOP_REQUESTED: RunStatus.STOPPED,
    EndReason.CLIENT_LEFT: RunStatus.STOPPED,
    EndReason.REPLACED: RunStatus.STOPPED,
}

CALLS_LEFT_OPEN = frozenset({EndReason.INTERRUPTED, EndReason.CLIENT_TOOLS})
"""Ends after which open calls wait for a person or for the client."""

_WORDS = {
    EndReason.SHUTDOWN: "The server is shutting down. What was said so far is kept; send the message again.",
    EndReason.SERVER_RESTART: "The server restarted while this run was answering. Finished work is kept.",
    EndReason.MODEL_ERROR: "The model failed to answer.",
    EndReason.MODEL_TIMEOUT: "The model stayed silent for too long.",
    EndReason.LOOP_LIMIT: "The agent used all its turns without finishing.",
    EndReason.RUN_TIMEOUT: "The run reached its time limit.",
    EndReason.TOKEN_BUDGET: "The run used up its token budget.",
    EndReason.OUTPUT_INVALID: "The model's answer does not have the form that was asked for.",
    EndReason.HOOK_ABORTED: "The run was refused by a rule of this server.",
    EndReason.STORAGE_FAILED: "The conversation could not be saved.",
    EndReason.INTERNAL_ERROR: "Something went wrong inside the server.",
}


def status_of(reason: EndReason) -> RunStatus:
    """The status a run has once it ended for this reason."""
    return _STATUS.get(reason, RunStatus.FAILED)


def error_of(reason: EndReason) -> RunError | None:
    """The code (the reason in capitals) and the public sentence of a failure; None for any other end."""
    words = _WORDS.get(reason)
    return RunError(reason.value.upper(), words) if words is not None else None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended.

    `interrupts` are the open questions of a paused run, `pending_calls` the calls that the client is to
    answer, and `result` the value of a structured answer.
    """

    reason: EndReason
    error: RunError | None = None
    usage: tuple[tuple[str | None, str | None, Usage], ...] = ()
    """Tokens by (provider, model)."""
    interrupts: tuple[Interrupt, ...] = ()
    pending_calls: tuple[str, ...] = ()
    result: JsonValue = None

    @classmethod
    def by(cls, reason: EndReason) -> "RunEnd":
        """An end for this reason, with its public words if it is a failure."""
        return cls(reason, error_of(reason))

    @property
    def status(self) -> RunStatus:
        return status_of(self.reason)
