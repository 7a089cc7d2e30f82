"""Hooks: functions of an application's own at the seams of a run.

A `before_call` hook shapes the messages of one model call and changes nothing that is kept. `after_turn` and
`before_stop` hooks add messages and can change none. All get copies; what they return is copied too.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from app.clock import Clock
from app.conversation.messages import Message, Usage


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a hook may know of its run; changing any of it changes nothing.

    `messages` is the model's view of the branch so far, injected messages included. `turn` counts the model
    calls of this run from 1, `usage` is the sum of what the providers reported in it, and `state` the
    thread's shared state.
    """

    namespace: str
    thread_id: str
    run_id: str
    agent: str
    sender_id: str | None
    state: JsonValue
    turn: int
    usage: Usage
    clock: Clock
    messages: tuple[Message, ...]


class BeforeCall(HookContext):
    """A model call is due. `messages` are those that it would be made with."""

    __slots__ = ()


class AfterTurn(HookContext):
    """The model has answered and every call of its answer has a result."""

    __slots__ = ()


class BeforeStop(HookContext):
    """The model is content and the run is about to end well."""

    __slots__ = ()


HookResult = Sequence[Message] | None
"""A list or tuple of messages, or None for nothing."""
BeforeCallHook = Callable[[BeforeCall], HookResult | Awaitable[HookResult]]
"""Gives the messages of this one call; None leaves them as they are."""
AfterTurnHook = Callable[[AfterTurn], HookResult | Awaitable[HookResult]]
"""Gives messages to append."""
BeforeStopHook = Callable[[BeforeStop], HookResult | Awaitable[HookResult]]
"""Gives messages to append; if there are any the run goes on with another model call."""

H = TypeVar("H", bound=Callable[..., object])
OneOrMore = H | Sequence[H]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one agent, each kind in the order in which they are asked."""

    before_call: tuple[BeforeCallHook, ...] = ()
    after_turn: tuple[AfterTurnHook, ...] = ()
    before_stop: tuple[BeforeStopHook, ...] = ()

    @property
    def follow_an_answer(self) -> bool:
        """Whether something may still be appended when the model is content."""
        return bool(self.after_turn or self.before_stop)


def as_hooks(given: OneOrMore[H], kind: str) -> tuple[H, ...]:
    """One hook or several as a tuple. TypeError for what cannot be called."""
    hooks: tuple[H, ...] = (given,) if callable(given) else tuple(given)
    for hook in hooks:
        if not callable(hook):
            raise TypeError(f"a {kind} hook is a function; {hook!r} is none")
    return hooks
