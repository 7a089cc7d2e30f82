"""The hooks before and after a tool: they may answer in its place, and give its result another form."""

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, cast

from pydantic import JsonValue

from app.agent.hook_call import HookFailed, name_of, own
from app.agent.hooking import Facts, Hooking
from app.agent.hooks import AfterTool, BeforeTool, Instead
from app.agent.pausing import Pause
from app.agent.tools import as_blocks
from app.conversation.blocks import Block, ToolCall
from app.conversation.messages import Usage
from app.conversation.words import Words

_log = logging.getLogger(__name__)

Hook = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Output:
    """What a call gave; `answered` if a hook gave it, and no tool."""

    content: tuple[Block, ...]
    is_error: bool = False
    answered: bool = False


class _CallFacts(TypedDict):
    call_id: str
    name: str
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ToolHooks:
    """The tool hooks around the calls of one answer: these run side by side, and so do their hooks. `turn`
    and `usage` are those of the model call that made them."""

    hooking: Hooking
    turn: int
    usage: Usage

    async def around(
        self,
        call: ToolCall,
        arguments: Mapping[str, JsonValue],
        run: Callable[[], Awaitable[Output | Pause]],
    ) -> Output | Pause:
        """Runs a tool between its hooks; `run` is not called if a hook answers.

        To be awaited by a task of the call's own, and not within the time that the tool has. HookFailed and
        Abort. When the task is cancelled before the tool began, or while hooks look at its result, the result
        is dropped with it: a hook may have wanted to hide it. `run` itself may bring its result home when it
        is cancelled; the hooks then have the grace of a cancelled tool.
        """
        output = await self._before(call, arguments) or await run()
        return output if isinstance(output, Pause) else await self._after(call, arguments, output)

    async def _before(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Output | None:
        for hook in self.hooking.hooks.before_tool:
            given = BeforeTool(**self._facts(), **_of(call, arguments))
            result = await self.hooking.calls.result(hook, given)
            if result is not None:
                return _read(hook, result)
        return None

    async def _after(self, call: ToolCall, arguments: Mapping[str, JsonValue], output: Output) -> Output:
        for hook in self.hooking.hooks.after_tool:
            given = AfterTool(
                **self._facts(),
                **_of(call, arguments),
                content=tuple(map(own, output.content)),
                is_error=output.is_error,
                answered=output.answered,
            )
            result = await self._asked(hook, given)
            if result is not None:
                output = replace(_read(hook, result), answered=output.answered)
        return output

    async def _asked(self, hook: Callable[[AfterTool], object], given: AfterTool) -> object:
        calls = self.hooking.calls
        if not _is_cancelled():
            return await calls.result(hook, given)
        try:
            return await calls.result(hook, given, seconds=self.hooking.limits.grace_seconds)
        except HookFailed as failed:
            _log.warning("a result of run %s is dropped: %s", given.run_id, failed)
            raise asyncio.CancelledError from failed

    def _facts(self) -> Facts:
        return self.hooking.facts(self.turn, self.usage)


def _is_cancelled() -> bool:
    """Whether somebody cancelled the present task, which went on to bring its result home."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _of(call: ToolCall, arguments: Mapping[str, JsonValue]) -> _CallFacts:
    return _CallFacts(call_id=call.id, name=call.name, arguments=copy.deepcopy(dict(arguments)))


def _read(hook: Hook, result: object) -> Output:
    """A copy of a hook's answer, as if a tool had given it."""
    if not isinstance(result, Instead):
        raise HookFailed(f"hook {name_of(hook)} returned {type(result).__name__}, neither Instead nor None")
    try:
        _check(result.content)
        content = tuple(map(own, as_blocks(result.content)))
    except (ValueError, TypeError, RecursionError) as error:
        raise HookFailed(f"hook {name_of(hook)} gave a result that is none") from error
    return Output(content, bool(result.is_error), answered=True)


def _check(content: object) -> None:
    """Blocks that were made without being validated."""
    items = cast(Sequence[object], content) if isinstance(content, list | tuple) else (content,)
    for item in items:
        if isinstance(item, Words):
            item.model_dump(mode="json", by_alias=True, warnings="error")
