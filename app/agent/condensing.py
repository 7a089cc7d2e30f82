"""The seam for whoever keeps prompts short: a view of the history, and now and then a summary to add to it.

The history itself only grows. `Compaction` and `Window` are the two that come with the package.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.agent.context import RunContext
from app.agent.limits import Limits
from app.agent.models.base import Model
from app.agent.prompt import Prompt
from app.agent.strays import Strays
from app.conversation.messages import Message
from app.conversation.recall import Recall

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """A summary that is due. It is to stand for `earlier`, the last summary, if there is one, and for
    `covered`, whose last message has the id `covers`. `kept` is what goes on to be shown."""

    covers: str
    covered: tuple[Message, ...]
    kept: tuple[Message, ...]
    earlier: Message | None = None

    @property
    def replaced(self) -> tuple[Message, ...]:
        """All that the summary stands for."""
        return self.covered if self.earlier is None else (self.earlier, *self.covered)


class Ask(Protocol):
    async def __call__(self, prompt: Prompt, model: Model | None) -> Message:
        """One more model call of the run, by its own model if none is given: retried, counted and stopped
        like any other. The whole answer; Stopped, ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What a run lends to those who condense its history."""

    run: RunContext
    ask: Ask
    limits: Limits
    strays: Strays


class NotSummarised(Exception):
    """No summary came of it; the message says why, for the log."""


class Condensing(Protocol):
    """Keeps prompts short. One object serves all runs of an agent, so it remembers none of them."""

    def recall(self) -> Recall:
        """How much of a branch the view needs."""
        ...

    def view(self, messages: Sequence[Message]) -> Sequence[Message]:
        """What the model is shown of this history. The same for the same history, wherever it was read."""
        ...

    def plan(self, messages: Sequence[Message]) -> Plan | None:
        """The summary that this history needs before the next call; None for none."""
        ...

    async def summarise(self, plan: Plan, means: Means) -> Message:
        """The message to append. NotSummarised, Stopped."""
        ...


class Condenser:
    """Condenses the history of one run. Without anything to do it by, it shows all of it.

    A summary that fails is no failure of the run: the history is shown as before, and no other summary is
    tried until the next run.
    """

    def __init__(self, condensing: Condensing | None, means: Means) -> None:
        self._condensing = condensing
        self._means = means
        self._gave_up = False

    def view(self, messages: Sequence[Message]) -> Sequence[Message]:
        """What the model is shown of this history."""
        return messages if self._condensing is None else self._condensing.view(messages)

    async def summary(self, messages: Sequence[Message]) -> Message | None:
        """A summary to append before the next call, if one is due. Stopped."""
        if self._condensing is None or self._gave_up:
            return None
        plan = self._condensing.plan(messages)
        if plan is None:
            return None
        try:
            return await self._condensing.summarise(plan, self._means)
        except NotSummarised as failed:
            _log.warning(
                "run %s goes on without a summary: %s", self._means.run.run_id, failed, exc_info=True
            )
            self._gave_up = True
            return None
