"""Turns of a known weight, and what a run lends to those who sum them up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.agent.compaction import Compaction
from app.agent.condensing import Condenser, Means, Plan
from app.agent.context import StopSignal
from app.agent.limits import Limits
from app.agent.models.base import Model
from app.agent.prompt import Prompt
from app.agent.strays import Strays
from app.conversation.blocks import (
    ToolCall,
)
from app.conversation.messages import (
    Message,
    Usage,
    assistant_message,
    tool_result_message,
    user_message,
)
from tests.agent.histories import never_asked
from tests.agent.running import context, texts

LONG = "x" * 384
"""A message of this text is estimated at 100 tokens."""
TOLD = "They greeted."


def turn(name: str, *, usage: int | None = None) -> list[Message]:
    """A question and an answer of 100 tokens each."""
    reported = None if usage is None else Usage(total_tokens=usage)
    question, answer = f"{name}?", f"{name}!"
    return [
        user_message(question + LONG[len(question) :], id=question),
        assistant_message(answer + LONG[len(answer) :], id=answer, usage=reported),
    ]


def step(name: str) -> list[Message]:
    """A call and its result, of 5 and 100 tokens."""
    return [
        assistant_message([ToolCall(id=name, name="ab", arguments="{}")], id=f"{name}-call"),
        tool_result_message(name, "ab", LONG, id=f"{name}-result"),
    ]


def ids(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]


def planned(compaction: Compaction, messages: Sequence[Message]) -> Plan:
    plan = compaction.plan(messages)
    assert plan is not None
    return plan


@dataclass
class Asked:
    """A run's model calls, answered by a script."""

    answers: list[str | Message | Exception] = field(default_factory=lambda: [TOLD])
    prompts: list[Prompt] = field(default_factory=list[Prompt])
    models: list[Model | None] = field(default_factory=list["Model | None"])

    async def __call__(self, prompt: Prompt, model: Model | None) -> Message:
        self.prompts.append(prompt)
        self.models.append(model)
        answer = self.answers[len(self.prompts) - 1]
        if isinstance(answer, Exception):
            raise answer
        return assistant_message(answer) if isinstance(answer, str) else answer

    @property
    def told(self) -> list[str]:
        """What the summariser was given, one text a call."""
        return ["".join(texts(prompt.messages)) for prompt in self.prompts]


def means(ask: Any = never_asked, *, stop: StopSignal | None = None, limits: Limits | None = None) -> Means:
    return Means(context(stop=stop), ask, limits or Limits(grace_seconds=0.05), Strays())


async def compacted(
    compaction: Compaction, messages: Sequence[Message], ask: Asked | None = None
) -> list[Message]:
    """The history with its next summary."""
    summary = await Condenser(compaction, means(ask or Asked())).summary(messages)
    assert summary is not None
    return [*messages, summary]
