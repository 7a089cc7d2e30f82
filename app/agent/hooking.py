"""Asks the hooks of one run. A hook is somebody else's code: it may raise, hang, or give what is no message.

So each runs in a task of its own (one that is not async in a thread), for as long as a tool may, and gets
copies of everything. Messages are frozen, the JSON values inside them are not: only those with such a value
need to be copied.
"""

import asyncio
import copy
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

from pydantic import JsonValue

from app.agent.blocking import in_thread
from app.agent.context import RunContext
from app.agent.hooks import BeforeCall, HookContext, Hooks
from app.agent.limits import Limits
from app.agent.scrub import scrub_json
from app.agent.strays import Strays
from app.clock import new_id
from app.conversation.blocks import ToolCall
from app.conversation.ids import is_id
from app.conversation.messages import Injected, Message, Role, Usage
from app.conversation.views import reader_sees
from app.conversation.words import Words

C = TypeVar("C", bound=HookContext)


class HookFailed(Exception):
    """A hook did not do what a hook does; the message names it, for the log."""


@dataclass(frozen=True, slots=True)
class Hooking:
    """The hooks of one agent in one run."""

    hooks: Hooks
    run: RunContext
    agent: str
    limits: Limits
    strays: Strays

    async def shape(self, messages: Sequence[Message], turn: int, usage: Usage) -> Sequence[Message]:
        """The messages of one call: each `before_call` hook sees what the one before it returned. The given
        list stays as it is. HookFailed, Stopped."""
        for hook in self.hooks.before_call:
            shaped = await self.ask(hook, self.tell(BeforeCall, messages, turn, usage))
            messages = messages if shaped is None else [_taken(message, hook) for message in shaped]
        return messages

    def tell(self, kind: type[C], messages: Sequence[Message], turn: int, usage: Usage) -> C:
        """What a hook of this kind is given."""
        return kind(
            namespace=self.run.namespace,
            thread_id=self.run.thread_id,
            run_id=self.run.run_id,
            agent=self.agent,
            sender_id=self.run.sender_id,
            state=copy.deepcopy(self.run.state),
            turn=turn,
            usage=usage,
            clock=self.run.clock,
            messages=tuple(_own(message) for message in messages),
        )

    async def ask(self, hook: Callable[[C], object], given: C) -> Sequence[Message] | None:
        """What the hook returns. Stopped if the run was asked to stop meanwhile; HookFailed if it raises,
        takes longer than a tool may, or returns anything but messages."""
        self.run.stop.check()
        body = asyncio.create_task(_call(hook, given), name=f"hook {_name(hook)}")
        try:
            await self.run.stop.interruptible(asyncio.wait({body}, timeout=self.limits.tool_seconds))
            if not body.done():
                raise HookFailed(f"hook {_name(hook)} did not finish within {self.limits.tool_seconds:g} s")
        except BaseException:
            await self._leave(body)
            raise
        return _messages(hook, body.result())

    async def _leave(self, body: asyncio.Task[object]) -> None:
        """Cancels a hook, gives it its grace and leaves it alone then."""
        body.cancel()
        try:
            await asyncio.wait({body}, timeout=self.limits.grace_seconds)
        finally:
            self.strays.take(body)

    def accept(
        self, hook: Callable[..., object], messages: Sequence[Message] | None, known: Collection[str]
    ) -> list[Message]:
        """Copies of the messages that a hook returned, ready to be appended: each has a mark (meta, unless
        the hook gave it one), a time, and an id that none of `known` has. HookFailed if one of them is for
        models and tools to make: a call or a result."""
        taken: list[Message] = []
        used = set(known)
        for given in messages or ():
            message = self._complete(_taken(given, hook), used)
            _refuse_calls(message, hook)
            used.add(message.id)
            taken.append(message)
        return taken

    def _complete(self, message: Message, used: Collection[str]) -> Message:
        """A hook speaks neither for a person nor for the model, so nothing of it is left unmarked."""
        changes: dict[str, object] = {}
        if message.id in used or not is_id(message.id):
            changes["id"] = new_id("msg")
        if message.created_at is None:
            changes["created_at"] = self.run.clock.now()
        if reader_sees(message):
            changes["injected"] = Injected.META
        return message.model_copy(update=changes) if changes else message


async def _call(hook: Callable[[C], object], given: C) -> object:
    try:
        if _is_async(hook):
            return await cast("asyncio.Future[object]", hook(given))
        result = await in_thread(partial(hook, given), "hook")
        return await result if inspect.isawaitable(result) else result
    except BaseException as error:
        # SystemExit would end the server. A cancellation that nobody asked for is the hook's own failure.
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise HookFailed(f"hook {_name(hook)} raised {type(error).__name__}") from error


def _is_async(hook: Callable[..., object]) -> bool:
    """Also for an object with an async `__call__`."""
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004


def _messages(hook: Callable[..., object], result: object) -> Sequence[Message] | None:
    if result is None:
        return None
    items = cast(Sequence[object], result) if isinstance(result, list | tuple) else None
    if items is None or not all(isinstance(item, Message) for item in items):
        kind = type(cast(object, result)).__name__
        raise HookFailed(f"hook {_name(hook)} returned {kind}, not a list of messages")
    return cast(Sequence[Message], items)


def _taken(message: Message, hook: Callable[..., object]) -> Message:
    """A copy that is valid and that every store and wire can carry."""
    try:
        value = cast(JsonValue, message.model_dump(mode="json", by_alias=True, warnings="error"))
        return Message.model_validate(scrub_json(value))
    except ValueError as error:
        raise HookFailed(f"hook {_name(hook)} returned a message that is none") from error


def _refuse_calls(message: Message, hook: Callable[..., object]) -> None:
    """Of a call or a result that nobody made, nobody could say what became of it."""
    if message.role is Role.TOOL_RESULT or any(isinstance(block, ToolCall) for block in message.content):
        raise HookFailed(f"hook {_name(hook)} returned a call or the result of one")


def _own(message: Message) -> Message:
    """The message, copied if anything in it could be changed."""
    parts = (message, *message.content)
    return message.model_copy(deep=True) if any(map(_is_loose, parts)) else message


def _is_loose(part: Words) -> bool:
    if part.model_extra:
        return True
    return any(
        isinstance(value, dict | list) or (isinstance(value, Words) and _is_loose(value))
        for value in vars(part).values()
    )


def _name(hook: Callable[..., object]) -> str:
    return getattr(hook, "__qualname__", None) or type(hook).__qualname__
