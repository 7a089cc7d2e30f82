"""Hooks: functions of an application's own at the seams of a run.

A `before_call` hook shapes the messages of one model call and changes nothing that is kept. `after_turn` and
`before_stop` hooks add entries and can change none. Those before and after a model or a tool let it go on,
answer in its place or end the run. All get copies; what they return is copied too. Any of them may raise
`Abort`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from app.agent.scrub import scrub
from app.clock import Clock
from app.conversation.blocks import Block
from app.conversation.entries import CustomEntry, TransientEntry
from app.conversation.messages import Message, Usage
from app.conversation.outcomes import EndReason, RunError, error_of
from app.conversation.views import snippet

LONGEST_WORDS = 1000
"""Characters of what a hook says when it ends a run."""


class Abort(Exception):
    """Raised by a hook to end its run. `public` is for everyone; what was said and done by then is kept.

    Blank words are replaced by those of a run that a rule refused; long ones are cut.
    """

    def __init__(self, public: str = "") -> None:
        super().__init__(public)
        self.public = snippet(scrub(str(public)), LONGEST_WORDS)

    @property
    def error(self) -> RunError:
        """What clients are told."""
        told = error_of(EndReason.HOOK_ABORTED)
        assert told is not None
        return RunError(told.code, self.public) if self.public else told


@dataclass(frozen=True, slots=True)
class Instead:
    """A hook's answer in the place of a model's or a tool's; one with nothing in it is an empty answer.

    `content` is text or blocks: for a model text blocks only, for a tool whatever a tool may return.
    `is_error` is a tool's alone.
    """

    content: str | Sequence[Block] | JsonValue = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a hook may know of its run; changing any of it changes nothing.

    `turn` counts the model calls of this run from 1 (0 where a paused run is taken up and none was made yet),
    `usage` is the sum of what the providers reported in it, and `state` the thread's shared state.
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


@dataclass(frozen=True, slots=True)
class HistoryContext(HookContext):
    """`messages` is the model's view of the branch so far, injected messages included."""

    messages: tuple[Message, ...]


class BeforeCall(HistoryContext):
    """A model call is due. `messages` are those that it would be made with."""

    __slots__ = ()


class AfterTurn(HistoryContext):
    """The model has answered and every call of its answer has a result."""

    __slots__ = ()


class BeforeStop(HistoryContext):
    """The model is content and the run is about to end well."""

    __slots__ = ()


class BeforeModel(HookContext):
    """A model is about to be asked."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AfterModel(HookContext):
    """A model, or a hook in its place, has answered with `message`; None if it said nothing at all.

    Its words were streamed already and are kept: what was said is never rewritten, so there is nothing to
    return.
    """

    message: Message | None


@dataclass(frozen=True, slots=True)
class ToolHookContext(HookContext):
    """`arguments` is the JSON object that the tool is given, after a person has edited it."""

    call_id: str
    name: str
    arguments: dict[str, JsonValue]


class BeforeTool(ToolHookContext):
    """A tool is about to run: there is one, the arguments fit, and a person agreed where one had to."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AfterTool(ToolHookContext):
    """A call has its result, which nobody has seen yet. `answered` tells that a hook gave it, and no tool."""

    content: tuple[Block, ...]
    is_error: bool
    answered: bool


Addition = Message | CustomEntry | TransientEntry
"""What a hook may append. A record always gets an id of its own: a hook cannot know which are taken."""
Shaped = Sequence[Message] | None
Added = Sequence[Addition] | None
Answer = Instead | None

BeforeCallHook = Callable[[BeforeCall], Shaped | Awaitable[Shaped]]
"""Gives the messages of this one call, as a list or tuple; None leaves them as they are."""
AfterTurnHook = Callable[[AfterTurn], Added | Awaitable[Added]]
"""Gives a list or tuple of what to append, or None for nothing."""
BeforeStopHook = Callable[[BeforeStop], Added | Awaitable[Added]]
"""Gives what to append; if there is a message in it the run goes on with another model call."""
BeforeModelHook = Callable[[BeforeModel], Answer | Awaitable[Answer]]
"""Gives an answer in the model's place; the hooks of this kind behind it are not asked then."""
AfterModelHook = Callable[[AfterModel], Awaitable[None] | None]
"""Sees the answer. Not asked when the call failed, was stopped or came to a limit."""
BeforeToolHook = Callable[[BeforeTool], Answer | Awaitable[Answer]]
"""Gives a result without the tool; the hooks of this kind behind it are not asked then."""
AfterToolHook = Callable[[AfterTool], Answer | Awaitable[Answer]]
"""Gives another result to be told and stored. Not asked when the call waits for a person."""

H = TypeVar("H", bound=Callable[..., object])
OneOrMore = H | Sequence[H | None] | None


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one agent, each kind in the order in which they are asked."""

    before_call: tuple[BeforeCallHook, ...] = ()
    after_turn: tuple[AfterTurnHook, ...] = ()
    before_stop: tuple[BeforeStopHook, ...] = ()
    before_model: tuple[BeforeModelHook, ...] = ()
    after_model: tuple[AfterModelHook, ...] = ()
    before_tool: tuple[BeforeToolHook, ...] = ()
    after_tool: tuple[AfterToolHook, ...] = ()

    @property
    def follow_an_answer(self) -> bool:
        """Whether something may still happen when the model is content: an `after_model` hook is asked when
        its message is kept, and may end the run otherwise than well."""
        return bool(self.after_model or self.after_turn or self.before_stop)


def as_hooks(given: OneOrMore[H], kind: str) -> tuple[H, ...]:
    """One hook or several as a tuple, without None. TypeError for what cannot be called."""
    several = (given,) if given is None or callable(given) else tuple(given)
    for hook in several:
        if hook is not None and not callable(hook):
            raise TypeError(f"a {kind} hook is a function; {hook!r} is none")
    return tuple(hook for hook in several if hook is not None)
