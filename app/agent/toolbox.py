"""The tools of one agent, and the running of calls. Each gets a result, or waits for a person."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isinf
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from app.agent.limits import Limits
from app.agent.pairing import result_of
from app.agent.pausing import Pause, Refused, Resumed, approval, expiry
from app.agent.prompt import ToolDefinition
from app.agent.scrub import scrub
from app.agent.strays import Strays
from app.agent.tool_context import NeedsAnswer, ToolContext, ToolError
from app.agent.tool_hooks import Output
from app.agent.tools import ArgumentsRefused, Tool, ToolLike, as_tool
from app.agent.workplace import Workplace
from app.conversation.blocks import Block, Reminder, Text, ToolCall
from app.conversation.messages import Message

_log = logging.getLogger(__name__)

CANCELLED = "This call was cancelled before it finished."
NOT_RUN = "This call was not run: the answer was stopped before it was complete."
_EDITED = "A person changed the arguments of this call to these: {arguments}"
_FRESH = Resumed()


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

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        return tuple(made.definition for made in self._tools.values())

    @property
    def asks_first(self) -> bool:
        """Whether a person may be asked before a tool runs."""
        return any(made.approval is not False for made in self._tools.values())

    @property
    def uses_context(self) -> bool:
        """Whether a tool takes part in the run: it may ask people, or change the shared state."""
        return any(made.context_parameter is not None for made in self._tools.values())

    async def answer(
        self, call: ToolCall, place: Workplace, resumed: Resumed | Refused | Pause = _FRESH
    ) -> Message | Pause:
        """Runs one call and gives its result, with the time at which it ended, or what it waits for.

        Cancelling this wait cancels the tool: it gets a short grace to end by itself and is then left
        alone. A result that it gives in that time is kept, else the result says that it was cancelled.
        HookFailed or Abort if a hook is in the way; it is cancelled itself only while it waits for a hook.
        """
        if isinstance(resumed, Pause):
            return resumed
        if isinstance(resumed, Refused):
            return self._result(call, _failure(resumed.words), place)
        output = await self._run(call, place, resumed)
        return output if isinstance(output, Pause) else self._result(call, output, place)

    def _result(self, call: ToolCall, output: Output, place: Workplace) -> Message:
        clock, sender = place.run.clock, place.agent
        return result_of(call, output.content, is_error=output.is_error, clock=clock, sender_id=sender)

    async def _run(self, call: ToolCall, place: Workplace, resumed: Resumed) -> Output | Pause:
        made = self._tools.get(call.name)
        if made is None:
            names = ", ".join(self._tools) or "none"
            return _failure(f"There is no tool named {call.name}. The tools are: {names}.")
        memory = resumed.memory
        text = call.arguments if memory.arguments is None else memory.arguments
        try:
            arguments = made.read(text)
        except ArgumentsRefused as error:
            failure = _failure(f"The arguments of {call.name} cannot be used: {error}.")
            return _with_notes(failure, resumed)
        shown = _shown(text)
        if not memory.approved and made.needs_approval(arguments):
            expires_at = expiry(place.run.clock, place.answer_seconds)
            return Pause((approval(call, made.definition, shown, memory, expires_at),))
        use = partial(self._bounded, made, arguments, call, place, resumed)
        output = await place.hooks.around(call, shown, use)
        return output if isinstance(output, Pause) else _with_notes(output, resumed)

    async def _bounded(
        self, made: Tool, arguments: dict[str, Any], call: ToolCall, place: Workplace, resumed: Resumed
    ) -> Output | Pause:
        """Runs the tool for as long as it may. Brings home what there is when it is cancelled."""
        job = self._use(made, arguments, call, place, resumed)
        body = asyncio.create_task(job, name=f"tool {call.name} {call.id}")
        seconds = made.timeout if made.timeout is not None else self._limits.tool_seconds
        late = CANCELLED
        try:
            await asyncio.wait({body}, timeout=None if seconds is None or isinf(seconds) else seconds)
            if not body.done():
                late = f"The tool {call.name} did not finish within {seconds:g} seconds."
        except asyncio.CancelledError:
            pass
        return await self._settled(body) or _failure(late)

    async def _settled(self, body: asyncio.Task[Output | Pause]) -> Output | Pause | None:
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

    async def _use(
        self, made: Tool, arguments: dict[str, Any], call: ToolCall, place: Workplace, resumed: Resumed
    ) -> Output | Pause:
        context = ToolContext(place, call, resumed)
        try:
            content = await made.call(arguments, context)
            return Output((*content, *context.reminders))
        except NeedsAnswer as needed:
            return Pause(needed.interrupts)
        except ToolError as error:
            return _failure(f"Tool {call.name} failed: {error}")
        except BaseException as error:
            # SystemExit would end the server. A cancellation that nobody asked for is the tool's own failure.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            _log.exception("tool %s failed in run %s", call.name, place.run.run_id)
            return _failure(f"Tool {call.name} failed.")
        finally:
            context.close()


def _is_cancelled() -> bool:
    """Whether somebody cancelled the present task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(words: str) -> Output:
    return Output((Text(text=scrub(words)),), is_error=True)


def _shown(text: str) -> Mapping[str, JsonValue]:
    """The arguments as a person is shown them; they have been read already."""
    value: JsonValue = from_json(text) if text.strip() else {}
    return value if isinstance(value, dict) else {}


def _with_notes(output: Output, resumed: Resumed) -> Output:
    """Tells the model, and no reader, what a person changed and said when they let the call run."""
    notes: list[Block] = []
    if resumed.memory.arguments is not None:
        words = _EDITED.format(arguments=resumed.memory.arguments)
        notes.append(Reminder(text=scrub(words), origin="approval"))
    if resumed.message:
        notes.append(Reminder(text=scrub(f"The person said: {resumed.message}"), origin="approval"))
    return replace(output, content=(*output.content, *notes)) if notes else output
