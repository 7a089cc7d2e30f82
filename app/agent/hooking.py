"""The hooks of one agent in one run, asked about its history: they shape one prompt, or append."""

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar

from pydantic import JsonValue

from app.agent.additions import read_additions, read_messages
from app.agent.context import RunContext
from app.agent.hook_call import HookCall, own
from app.agent.hooks import AfterTurn, BeforeCall, BeforeStop, HistoryContext, Hooks
from app.agent.limits import Limits
from app.agent.strays import Strays
from app.clock import Clock
from app.conversation.entries import Entry
from app.conversation.messages import Message, Usage

C = TypeVar("C", bound=HistoryContext)


class Facts(TypedDict):
    """What every hook is told: the fields of `HookContext`."""

    namespace: str
    thread_id: str
    run_id: str
    agent: str
    sender_id: str | None
    state: JsonValue
    turn: int
    usage: Usage
    clock: Clock


@dataclass(frozen=True, slots=True)
class Hooking:
    """What it takes to ask the hooks of one agent in one run. `state` gives the shared state as it is now;
    None where it is what it was when the run began."""

    hooks: Hooks
    run: RunContext
    agent: str
    limits: Limits
    strays: Strays
    state: Callable[[], JsonValue] | None = None

    @property
    def calls(self) -> HookCall:
        return HookCall(self.limits, self.strays)

    def facts(self, turn: int, usage: Usage) -> Facts:
        """What any hook is told at this point of the run."""
        return Facts(
            namespace=self.run.namespace,
            thread_id=self.run.thread_id,
            run_id=self.run.run_id,
            agent=self.agent,
            sender_id=self.run.sender_id,
            state=copy.deepcopy(self.run.state if self.state is None else self.state()),
            turn=turn,
            usage=usage,
            clock=self.run.clock,
        )

    async def shape(self, messages: Sequence[Message], turn: int, usage: Usage) -> Sequence[Message]:
        """The messages of one call: each `before_call` hook sees what the one before it returned. The given
        list stays as it is. HookFailed, Abort, Stopped."""
        for hook in self.hooks.before_call:
            given = self._tell(BeforeCall, messages, turn, usage)
            result = await self.calls.result(hook, given, stop=self.run.stop)
            shaped = read_messages(hook, result)
            messages = messages if shaped is None else shaped
        return messages

    async def additions(
        self,
        hook: Callable[..., object],
        kind: type[AfterTurn] | type[BeforeStop],
        messages: Sequence[Message],
        turn: int,
        usage: Usage,
        known: Collection[str] | None = None,
    ) -> list[Entry]:
        """What one hook of this kind appends, ready to be kept and told. `known` are the ids that are taken,
        those of the messages unless more are. HookFailed, Abort, Stopped."""
        given = self._tell(kind, messages, turn, usage)
        result = await self.calls.result(hook, given, stop=self.run.stop)
        ids = {message.id for message in messages} if known is None else known
        return read_additions(hook, result, known=ids, clock=self.run.clock, sender_id=self.agent)

    def _tell(self, kind: type[C], messages: Sequence[Message], turn: int, usage: Usage) -> C:
        return kind(**self.facts(turn, usage), messages=tuple(map(own, messages)))
