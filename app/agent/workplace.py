"""What all calls of one answer share."""

from dataclasses import dataclass

from app.agent.context import Children, RunContext
from app.agent.models.base import Model
from app.agent.outbox import Outbox
from app.agent.shared_state import SharedState
from app.agent.tool_hooks import ToolHooks


@dataclass(frozen=True, slots=True)
class Workplace:
    """The run, the agent that made the calls, and what the tools may use. Times are in seconds."""

    run: RunContext
    agent: str
    model: Model
    state: SharedState
    outbox: Outbox
    children: Children
    hooks: ToolHooks
    answer_seconds: float | None
    grace_seconds: float
