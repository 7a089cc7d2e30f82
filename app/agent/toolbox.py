"""The tools of one agent, and the running of calls to them. Every call gets a result."""

import asyncio
import copy
import logging
from collections.abc import Iterable, Sequence

from app.agent.context import RunContext
from app.agent.limits import Limits
from app.agent.pairing import result_of
from app.agent.prompt import ToolDefinition
from app.agent.scrub import scrub
from app.agent.strays import Strays
from app.agent.tools import ArgumentsRefused, Tool, ToolContext, ToolError, ToolLike, as_tool
from app.conversation.blocks import Block, Text, ToolCall
from app.conversation.messages import Message

_log = logging.getLogger(__name__)

CANCELLED = "This call was cancelled before it finished."
NOT_RUN = "This call was not run: the answer was stopped before it was complete."

_Result = tuple[tuple[Block, ...], bool]


class Toolbox:
    """Tools by name. ValueError if two have the same."""

    def __init__(self, tools: Iterable[ToolLike], limits: Limits, strays: Strays | None = None) -> None:
        self._tools: dict[str, Tool] = {}
        self._limits = limits
        self._strays = strays or Strays()
        for given in tools:
            made = as_tool(given)
            if made.name in self._tools:
                raise ValueError(f"two tools are named {made.name}")
            self._tools[made.name] = made

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        return tuple(made.definition for made in self._tools.values())

    async def answer(self, call: ToolCall, context: RunContext, sender_id: str) -> Message:
        """Runs one call and gives its result, with the time at which it ended.

        Cancelling this wait cancels the tool: it gets a short grace to end by itself and is then left
        alone. A result that it gives in that time is kept, else the result says that it was cancelled. So
        this always returns once it has begun.
        """
        body = asyncio.create_task(self._run(call, context), name=f"tool {call.name} {call.id}")
        made = self._tools.get(call.name)
        seconds = made.timeout if made and made.timeout is not None else self._limits.tool_seconds
        late = CANCELLED
        try:
            await asyncio.wait({body}, timeout=seconds)
            if not body.done():
                late = f"The tool {call.name} did not finish within {seconds:g} seconds."
        except asyncio.CancelledError:
            pass
        content, is_error = await self._settled(body) or (_text(late), True)
        return result_of(call, content, is_error=is_error, clock=context.clock, sender_id=sender_id)

    async def _settled(self, body: asyncio.Task[_Result]) -> _Result | None:
        """What the tool gave, after a cancellation and the grace for it if it still runs."""
        if not body.done():
            body.cancel()
            try:
                await asyncio.wait({body}, timeout=self._limits.grace_seconds)
            except asyncio.CancelledError:
                _log.debug("cancelled again while a tool ends")
        if not body.done():
            self._strays.take(body)
            return None
        return None if body.cancelled() else body.result()

    async def _run(self, call: ToolCall, context: RunContext) -> _Result:
        made = self._tools.get(call.name)
        if made is None:
            names = ", ".join(self._tools) or "none"
            return _text(f"There is no tool named {call.name}. The tools are: {names}."), True
        try:
            return await made.call(made.read(call.arguments), _tool_context(call, context, made)), False
        except ArgumentsRefused as error:
            return _text(f"The arguments of {call.name} cannot be used: {error}."), True
        except ToolError as error:
            return _text(f"Tool {call.name} failed: {error}"), True
        except BaseException as error:
            # SystemExit would end the server. A cancellation that nobody asked for is the tool's own failure.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            _log.exception("tool %s failed in run %s", call.name, context.run_id)
            return _text(f"Tool {call.name} failed."), True


def _is_cancelled() -> bool:
    """Whether somebody cancelled the present task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _text(words: str) -> tuple[Block, ...]:
    return (Text(text=scrub(words)),)


def _tool_context(call: ToolCall, context: RunContext, made: Tool) -> ToolContext:
    return ToolContext(
        namespace=context.namespace,
        thread_id=context.thread_id,
        run_id=context.run_id,
        call_id=call.id,
        sender_id=context.sender_id,
        state=copy.deepcopy(context.state) if made.context_parameter else None,
        clock=context.clock,
    )
