"""The main path: ask the model, run the tools it calls, ask again, until it is content or told to stop.

A run never raises: whatever happens, every call has a result and the last event is `RunDone`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from app.agent.attribution import attributed
from app.agent.context import RunContext, Stopped, StopSignal
from app.agent.events import AgentEvent, Appended, MessageDone, RunDone, StepEnded, StepStarted, ToolDone
from app.agent.hooking import HookFailed, Hooking
from app.agent.hooks import AfterTurn, BeforeStop, Hooks
from app.agent.limits import Limits
from app.agent.models.base import Model, ModelError, ModelEvent
from app.agent.pairing import paired, result_of, unanswered_calls
from app.agent.prompt import Prompt
from app.agent.response import Response
from app.agent.strays import Strays
from app.agent.stream import ModelStream
from app.agent.toolbox import CANCELLED, NOT_RUN, Toolbox
from app.agent.watch import Watch
from app.conversation.blocks import ToolCall
from app.conversation.entries import MessageEntry
from app.conversation.messages import Message, StopReason, Usage
from app.conversation.outcomes import EndReason, RunEnd, RunError, error_of

_log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]

_CUT = "The connection to the model was lost before its answer was complete."
_WHY_NOT_RUN = {
    EndReason.LENGTH: "This call was not run: the answer was cut by the model's token limit.",
    EndReason.LOOP_LIMIT: "This call was not run: the limit of model calls for one run was reached.",
    EndReason.TOKEN_BUDGET: "This call was not run: the run used up its token budget.",
    EndReason.MODEL_ERROR: "This call was not run: the model failed before its answer was complete.",
    EndReason.MODEL_TIMEOUT: "This call was not run: the model fell silent before its answer was complete.",
    EndReason.INTERNAL_ERROR: "This call has no result: something went wrong inside the server.",
}


@dataclass(frozen=True, slots=True)
class Mind:
    """What an agent answers with."""

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


class Loop:
    """One run. `events` is to be iterated once, by one task."""

    def __init__(self, mind: Mind, context: RunContext) -> None:
        self._mind = mind
        self._context = context
        self._messages = list(context.history)
        self._used = {call.id for message in self._messages for call in message.tool_calls()}
        self._mine: list[Message] = []
        self._usage: dict[tuple[str | None, str | None], Usage] = {}
        self._response = Response(context.clock, self._used)
        self._hooking = Hooking(mind.hooks, context, mind.name, mind.limits, mind.strays)
        self._turn = 0
        self._step: str | None = None
        self._end: EndReason | None = None
        self._error: RunError | None = None

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Everything that happens, `RunDone` last."""
        try:
            with Watch(self._context.stop, self._mind.limits) as watch:
                async with aclosing(self._turns(watch)) as turns:
                    async for event in turns:
                        yield event
        except Exception:
            _log.exception("run %s of agent %s failed", self._context.run_id, self._mind.name)
            self._end = EndReason.INTERNAL_ERROR
        for event in self._settle():
            yield event
        yield RunDone(self._run_end())

    async def _turns(self, watch: Watch) -> AsyncGenerator[AgentEvent, None]:
        while self._end is None:
            self._turn += 1
            async with aclosing(self._ask(watch)) as asking:
                async for event in asking:
                    yield event
            calls = unanswered_calls(self._mine)
            if self._end is None:
                self._end = self._end_before_call() if calls else EndReason.DONE
            if self._end is None:
                async with aclosing(self._use_tools(calls)) as using:
                    async for event in using:
                        yield event
            if self._end in (None, EndReason.DONE):
                async with aclosing(self._ask_hooks()) as asking:
                    async for event in asking:
                        yield event

    def _end_before_call(self) -> EndReason | None:
        """Why another model call may not follow."""
        if self._turn >= self._mind.limits.turns:
            return EndReason.LOOP_LIMIT
        budget = self._mind.limits.tokens
        return EndReason.TOKEN_BUDGET if budget is not None and self._tokens() >= budget else None

    async def _ask_hooks(self) -> AsyncGenerator[AgentEvent, None]:
        """What hooks append behind a whole turn; each sees what those before it appended."""
        hooks, wants_more = self._mind.hooks, False
        try:
            for hook in hooks.after_turn:
                for event in await self._appended(hook, AfterTurn):
                    yield event
            for hook in hooks.before_stop if self._end is EndReason.DONE else ():
                for event in await self._appended(hook, BeforeStop):
                    wants_more = True
                    yield event
        except Stopped as stopped:
            self._end = stopped.reason
        except HookFailed as failed:
            self._blame_hook(failed)
        else:
            if wants_more:
                self._end = self._end_before_call()

    async def _ask(self, watch: Watch) -> AsyncGenerator[AgentEvent, None]:
        """One response of the model, finished or not: what came of it is kept."""
        yield self._enter("model")
        self._response = Response(self._context.clock, self._used)
        try:
            async with aclosing(self._listen(watch)) as telling:
                async for event in telling:
                    yield event
            reason = self._response.stop_reason()
            self._judge(reason)
        except Stopped as stopped:
            self._end = stopped.reason
            timed_out = stopped.reason is EndReason.MODEL_TIMEOUT
            reason = StopReason.ERROR if timed_out else StopReason.ABORTED
        except ModelError as error:
            reason = StopReason.ERROR
            self._blame_model(error)
        except HookFailed as failed:
            reason = StopReason.ERROR
            self._blame_hook(failed)
        except Exception:
            _log.exception("model %s failed in run %s", self._mind.model.name, self._context.run_id)
            reason = StopReason.ERROR
            self._end = EndReason.INTERNAL_ERROR
        response = self._response
        for event in response.close():
            yield event
        self._count(response)
        message = response.message(reason, self._mind.model, self._mind.name)
        if message is not None:
            self._keep(message)
            yield MessageDone(message, last=self._nothing_follows())
        yield self._leave()

    async def _listen(self, watch: Watch) -> AsyncGenerator[AgentEvent, None]:
        """What the model says. A request that fails before anything was told is made again a few times."""
        prompt = Prompt(
            system=self._mind.instructions,
            messages=paired(self._attributed(await self._shaped())),
            tools=self._mind.toolbox.definitions,
        )
        limits = self._mind.limits
        for attempt in range(limits.retries + 1):
            try:
                async with aclosing(self._request(prompt, watch)) as telling:
                    async for event in telling:
                        yield event
                return
            except ModelError as error:
                if self._response.begun or not error.retryable or attempt == limits.retries:
                    raise
                _log.warning("model call failed and is tried again: %s", error.public)
            self._count(self._response)
            self._response = Response(self._context.clock, self._used)
            await self._context.stop.interruptible(self._mind.sleep(limits.retry_seconds * 2**attempt))

    def _attributed(self, messages: Sequence[Message]) -> Sequence[Message]:
        return attributed(messages, self._mind.name) if self._mind.attribution else messages

    async def _shaped(self) -> Sequence[Message]:
        """The messages of this call. What is kept stays as it is, so that no shaping adds to another."""
        if not self._mind.hooks.before_call:
            return self._messages
        return await self._hooking.shape(self._messages, self._turn, self._total())

    async def _request(self, prompt: Prompt, watch: Watch) -> AsyncGenerator[AgentEvent, None]:
        response, stop, mind = self._response, self._context.stop, self._mind
        async with ModelStream(mind.model, prompt, mind.limits.grace_seconds, mind.strays) as stream:
            with stop.waking(stream.wake):
                while batch := await _next_batch(stream, stop, watch):
                    for piece in batch:
                        for event in response.take(piece):
                            yield event
                        stop.check()
        if response.finished is None:
            raise ModelError(_CUT, retryable=True)

    async def _use_tools(self, calls: Sequence[ToolCall]) -> AsyncGenerator[AgentEvent, None]:
        """Runs all calls side by side and tells their results in the order of the calls."""
        yield self._enter("tools")
        answer, name = self._mind.toolbox.answer, self._mind.name
        running = [asyncio.create_task(answer(call, self._context, name)) for call in calls]
        try:
            for task in running:
                await self._context.stop.interruptible(asyncio.wait({task}))
                yield ToolDone(self._keep(task.result()))
        except Stopped as stopped:
            self._end = stopped.reason
            await _cancel(running)
            kept = {message.call_id for message in self._mine}
            for call, task in zip(calls, running, strict=True):
                if call.id not in kept:
                    yield ToolDone(self._keep(self._last_result(call, task)))
        finally:
            await _cancel(running)
        yield self._leave()

    def _last_result(self, call: ToolCall, task: asyncio.Task[Message]) -> Message:
        if task.cancelled():
            return self._error_result(call, CANCELLED)
        return task.result()

    async def _appended(
        self, hook: Callable[..., object], kind: type[AfterTurn] | type[BeforeStop]
    ) -> list[Appended]:
        given = self._hooking.tell(kind, self._messages, self._turn, self._total())
        known = {message.id for message in self._messages}
        messages = self._hooking.accept(hook, await self._hooking.ask(hook, given), known)
        return [Appended(MessageEntry(self._keep(message))) for message in messages]

    def _nothing_follows(self) -> bool:
        """Whether the message just kept is the last of the run: nothing to run, no hook to be asked."""
        ends = self._end is not None or not self._mind.hooks.follow_an_answer
        return ends and not unanswered_calls(self._mine)

    def _settle(self) -> Iterator[AgentEvent]:
        """Ends the step that is open and answers every call that has no result."""
        if self._step is not None:
            yield self._leave()
        words = _WHY_NOT_RUN.get(self._end or EndReason.INTERNAL_ERROR, NOT_RUN)
        for call in unanswered_calls(self._mine):
            yield ToolDone(self._keep(self._error_result(call, words)))

    def _error_result(self, call: ToolCall, words: str) -> Message:
        return result_of(call, words, is_error=True, clock=self._context.clock, sender_id=self._mind.name)

    def _judge(self, reason: StopReason) -> None:
        if reason is StopReason.LENGTH:
            self._end = EndReason.LENGTH
        elif reason in (StopReason.ERROR, StopReason.ABORTED):
            self._end = EndReason.MODEL_ERROR

    def _blame_model(self, error: ModelError) -> None:
        _log.warning("model call failed in run %s: %s", self._context.run_id, error.public)
        self._end = EndReason.MODEL_TIMEOUT if error.timeout else EndReason.MODEL_ERROR
        self._error = RunError(self._end.value.upper(), error.public)

    def _blame_hook(self, failed: HookFailed) -> None:
        _log.error("run %s of agent %s: %s", self._context.run_id, self._mind.name, failed, exc_info=failed)
        self._end = EndReason.INTERNAL_ERROR

    def _enter(self, step: str) -> StepStarted:
        self._step = step
        return StepStarted(step)

    def _leave(self) -> StepEnded:
        step, self._step = self._step, None
        assert step is not None
        return StepEnded(step)

    def _keep(self, message: Message) -> Message:
        self._messages.append(message)
        self._mine.append(message)
        return message

    def _count(self, response: Response) -> None:
        finished = response.finished
        if finished is not None and finished.usage is not None:
            key = (self._mind.model.provider, finished.model or self._mind.model.name)
            self._usage[key] = self._usage[key] + finished.usage if key in self._usage else finished.usage

    def _total(self) -> Usage:
        return sum(self._usage.values(), Usage())

    def _tokens(self) -> int:
        return sum(
            usage.total_tokens or (usage.input_tokens or 0) + (usage.output_tokens or 0)
            for usage in self._usage.values()
        )

    def _run_end(self) -> RunEnd:
        reason = self._end or EndReason.INTERNAL_ERROR
        usage = tuple((provider, model, total) for (provider, model), total in self._usage.items())
        return RunEnd(reason, self._error or error_of(reason), usage)


async def _next_batch(stream: ModelStream, stop: StopSignal, watch: Watch) -> Sequence[ModelEvent]:
    """What the model has said meanwhile; empty at its end."""
    stop.check()
    if not stream.ready:
        watch.wait()
        try:
            await stream.news()
        finally:
            watch.heard()
        stop.check()
    return stream.take()


async def _cancel(tasks: Sequence[asyncio.Task[Message]]) -> None:
    """Cancels those that still run and waits for their last words; each is done after its grace."""
    pending = {task for task in tasks if not task.done()}
    for task in pending:
        task.cancel()
    if pending:
        await asyncio.wait(pending)
