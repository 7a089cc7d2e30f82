"""What an agent answers with, as the loop uses it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.agent.asking import Sleep
from app.agent.condensing import Condensing
from app.agent.hooks import Hooks
from app.agent.limits import Limits
from app.agent.models.base import Model
from app.agent.strays import Strays
from app.agent.structured import Output
from app.agent.subagent import LocalChildren
from app.agent.toolbox import Toolbox


def _nobody() -> Mapping[str, "Mind"]:
    return {}


@dataclass(frozen=True, slots=True)
class Mind:
    """One agent in one run. `handoffs` gives the agents that it may hand over to, by the tool's name."""

    name: str
    model: Model
    instructions: str
    toolbox: Toolbox
    limits: Limits
    sleep: Sleep = asyncio.sleep
    strays: Strays = field(default_factory=Strays)
    """Takes models that go on after their grace; to be one that outlives the run."""
    hooks: Hooks = field(default_factory=Hooks)
    attribution: bool = False
    steering_notice: bool = True
    output: Output | None = None
    condense: Condensing | None = None
    description: str = ""
    sticky: bool = False
    """Whether the last who answered goes on in the next run."""
    children: LocalChildren = field(default_factory=LocalChildren)
    """Runs sub-agents where no server does."""
    handoffs: Callable[[], Mapping[str, "Mind"]] = _nobody
