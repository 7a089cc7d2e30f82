"""The main path: ask the model, run the tools it calls, ask again, until it is content or told to stop.

A run never raises: whatever happens, the last event is `RunDone`, and every call has a result then, unless
the run pauses for a person or leaves the call to the client.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from pydantic import JsonValue

from app.agent.asking import Asking, Desk
from app.agent.calls import CallBatch
from app.agent.condensing import Condenser, Means
from app.agent.context import NoInbox, RunContext, Stopped
from app.agent.ending import Ending
from app.agent.events import (
    AgentEvent,
    Appended,
    MessageDone,
    RunDone,
    StateChanged,
    StepEnded,
    StepStarted,
    ToolDone,
)
from app.agent.handoff import handed_over, responder
from app.agent.hook_call import HookFailed
from app.agent.hooking import Hooking
from app.agent.hooks import Abort, AfterTurn, BeforeStop
from app.agent.mind import Mind
from app.agent.model_hooks import Substitute, answered, answering
from app.agent.models.base import Model
from app.agent.outbox import Outbox
from app.agent.pairing import result_of, waiting_calls
from app.agent.pausing import by_call
from app.agent.prompt import Prompt
from app.agent.prompting import PromptMaker
from app.agent.shared_state import Patch, SharedState
from app.agent.structured import OutputRefused
from app.agent.tally import Tally
from app.agent.tool_hooks import ToolHooks
from app.agent.watch import Watch
from app.agent.workplace import Workplace
from app.conversation.blocks import ToolCall
from app.conversation.entries import MessageEntry
from app.conversation.messages import Injected, Message, Role, assistant_message, user_message
from app.conversation.outcomes import CALLS_LEFT_OPEN, EndReason
from app.conversation.views import reader_text

_log = logging.getLogger(__name__)

_ASK_AGAIN = "Your answer cannot be used: {why}. Give it again: JSON of the form asked for, and nothing else."
_OUTPUT_TRIES = 3


class Loop:
    """One run. `events` is to be iterated once, by one task."""

    def __init__(self, mind: Mind, context: RunContext) -> None:
        self._root = self._mind = mind
        self._context = context
        self._messages = list(context.history)
        self._client_tools = {tool.name: tool for tool in context.client_tools}
        self._open: list[ToolCall] = []
        """Calls that this run is to see to and that have no result yet."""
        self._arrived: set[str] = set()
        """Ids of messages that came while the run was under way."""
        self._tally = Tally()
        self._outbox = Outbox()
        self._state = SharedState(context.state, self._state_changed)
        self._turn = 0
        self._refused = 0
        self._step: str | None = None
        self._ending = Ending(context.run_id)

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Everything that happens, `RunDone` last."""
        try:
            with Watch(self._context.stop, self._root.limits) as watch:
                self._desk = self._furnish(watch)
                self._condenser = self._condensing()
                async with aclosing(self._turns()) as turns:
                    async for event in turns:
                        yield event
        except Exception:
            _log.exception("run %s of agent %s failed", self._context.run_id, self._mind.name)
            self._ending.reason = EndReason.INTERNAL_ERROR
        for event in self._settle():
            yield event
        yield RunDone(self._ending.run_end(self._open, self._tally.costs()))

    async def _turns(self) -> AsyncGenerator[AgentEvent, None]:
        async for event in self._stage(self._take_up()):
            yield event
        while self._ending.reason is None:
            async for event in self._stage(self._read_inbox()):
                yield event
            if self._ending.reason is None:
                async for event in self._stage(self._turn_of_the_model()):
                    yield event
            if self._ending.reason in (None, EndReason.DONE):
                async for event in self._stage(self._ask_hooks()):
                    yield event
            if self._ending.is_well:
                async for event in self._stage(self._last_look()):
                    yield event

    async def _stage(self, stage: AsyncGenerator[AgentEvent, None]) -> AsyncGenerator[AgentEvent, None]:
        """A part of the run. What cuts it short is the end of the run."""
        try:
            async with aclosing(stage) as events:
                async for event in events:
                    yield event
        except (Stopped, Abort, HookFailed) as error:
            self._ending.cut_short(error)

    async def _take_up(self) -> AsyncGenerator[AgentEvent, None]:
        """Goes on where a paused run stands, and with whom the conversation was handed over to."""
        waiting = self._waiting_calls()
        if waiting or self._root.sticky:
            self._mind = responder(self._root, self._messages)
        if waiting:
            self._open = waiting
            async with aclosing(self._use_tools()) as using:
                async for event in using:
                    yield event
            if self._ending.reason is None:
                async with aclosing(self._ask_hooks()) as asking:
                    async for event in asking:
                        yield event
        elif self._root.sticky:
            self._mind = handed_over(self._mind, self._messages) or self._mind
        for message in self._context.held if self._ending.reason is None else ():
            yield Appended(MessageEntry(self._keep(message)))

    def _waiting_calls(self) -> list[ToolCall]:
        """Open calls of the past that somebody was asked about, or that the client has not answered yet."""
        asked = by_call(self._context.interrupts)
        return [
            call
            for call in waiting_calls(self._messages)
            if call.id in asked or call.name in self._client_tools
        ]

    async def _turn_of_the_model(self) -> AsyncGenerator[AgentEvent, None]:
        self._turn += 1
        async with aclosing(self._ask()) as asking:
            async for event in asking:
                yield event
        if self._ending.reason is None:
            self._ending.reason = self._end_before_call() if self._open else EndReason.DONE
        if self._ending.reason is None:
            async with aclosing(self._use_tools()) as using:
                async for event in using:
                    yield event

    def _end_before_call(self) -> EndReason | None:
        """Why another model call may not follow."""
        if self._turn >= self._root.limits.turns:
            return EndReason.LOOP_LIMIT
        budget = self._root.limits.tokens
        return EndReason.TOKEN_BUDGET if budget is not None and self._tally.tokens() >= budget else None

    async def _read_inbox(self) -> AsyncGenerator[AgentEvent, None]:
        for message in await self._context.inbox.take():
            self._arrived.add(message.id)
            yield Appended(MessageEntry(self._keep(message)))

    async def _ask_hooks(self) -> AsyncGenerator[AgentEvent, None]:
        """What hooks append behind a whole turn; each sees what those before it appended."""
        hooks, wants_more = self._mind.hooks, False
        for hook in hooks.after_turn:
            for event in await self._appended(hook, AfterTurn):
                yield event
        for hook in hooks.before_stop if self._ending.reason is EndReason.DONE else ():
            for event in await self._appended(hook, BeforeStop):
                wants_more = wants_more or isinstance(event.entry, MessageEntry)
                yield event
        if wants_more:
            self._ending.reason = self._end_before_call()

    async def _last_look(self) -> AsyncGenerator[AgentEvent, None]:
        """A run that would end well goes on if somebody wrote meanwhile, or if its answer lacks the form."""
        arrived = False
        async with aclosing(self._read_inbox()) as reading:
            async for event in reading:
                arrived = True
                yield event
        if arrived:
            self._ending.reason = self._end_before_call()
        elif self._mind.output is not None:
            try:
                self._ending.result = self._mind.output.read(self._last_words())
            except OutputRefused as refused:
                for event in self._ask_again(refused):
                    yield event

    def _last_words(self) -> str:
        """The text of the last answer; hooks may have appended something behind it."""
        return next((reader_text(one) for one in reversed(self._messages) if one.role is Role.ASSISTANT), "")

    def _ask_again(self, refused: OutputRefused) -> Iterator[AgentEvent]:
        self._refused += 1
        if self._refused == _OUTPUT_TRIES:
            _log.warning("run %s: the answer has not the form asked for: %s", self._context.run_id, refused)
            self._ending.reason = EndReason.OUTPUT_INVALID
            return
        self._ending.reason = self._end_before_call()
        words = _ASK_AGAIN.format(why=refused)
        note = user_message(words, clock=self._context.clock, injected=Injected.EPHEMERAL, origin="output")
        yield Appended(MessageEntry(self._keep(note)))

    async def _ask(self) -> AsyncGenerator[AgentEvent, None]:
        """One response of the model, finished or not: what came of it is kept."""
        yield self._enter("model")
        asking = Asking(self._desk, self._mind.name)
        model = self._mind.model
        try:
            model = await answering(self._hooking(), model, self._turn, self._tally.total())
            if not isinstance(model, Substitute) and (
                summary := await self._condenser.summary(self._messages)
            ):
                yield Appended(MessageEntry(self._keep(summary)))
            prompt = await self._prompt_for(model)
            async with aclosing(asking.events(prompt, model)) as telling:
                async for event in telling:
                    yield event
            reason = asking.response.stop_reason()
            self._ending.judge(reason)
        except Exception as error:
            reason = self._ending.cut_short(error)
        for event in asking.response.close():
            yield event
        message = asking.response.message(reason, model)
        if message is not None:
            self._keep(message)
            yield MessageDone(message, last=self._nothing_follows())
        if self._ending.reason is None and self._mind.hooks.after_model:
            await answered(self._hooking(), message, self._turn, self._tally.total())
        yield self._leave()

    async def _prompt_for(self, model: Model) -> Prompt:
        """A hook that answers in the model's place is shown nothing, and nothing is made for it."""
        if isinstance(model, Substitute):
            return Prompt(system="", messages=())
        return await self._maker().prompt(self._messages, self._arrived)

    async def _use_tools(self) -> AsyncGenerator[AgentEvent, None]:
        """Runs all open calls side by side. Those of the client are left to it, and what waits for a person
        pauses the run."""
        yield self._enter("tools")
        handoffs = {name: target.name for name, target in self._mind.handoffs().items()}
        batch = CallBatch(
            self._open,
            self._mind.toolbox,
            self._workplace(),
            client_tools=self._client_tools,
            handoffs=handoffs,
        )
        async with aclosing(batch.events()) as events:
            async for event in events:
                if isinstance(event, ToolDone):
                    self._keep(event.message)
                yield event
        if batch.interrupts:
            self._ending.pause(batch.interrupts)
        elif batch.clients:
            self._ending.reason = EndReason.CLIENT_TOOLS
        else:
            self._mind = handed_over(self._mind, self._messages) or self._mind
        yield self._leave()

    def _condensing(self) -> Condenser:
        root = self._root
        return Condenser(root.condense, Means(self._context, self._ask_aside, root.limits, root.strays))

    async def _ask_aside(self, prompt: Prompt, model: Model | None) -> Message:
        """A call of whose answer nothing is told."""
        model, asking = model or self._mind.model, Asking(self._desk)
        async with aclosing(asking.events(prompt, model)) as telling:
            async for _ in telling:
                pass
        for _ in asking.response.close():
            pass
        reason = asking.response.stop_reason()
        return asking.response.message(reason, model) or assistant_message(())

    def _maker(self) -> PromptMaker:
        context = self._context
        return PromptMaker(
            self._mind,
            self._condenser,
            self._hooking(),
            self._client_tools,
            context.clock,
            self._turn,
            self._tally.total(),
        )

    def _workplace(self) -> Workplace:
        limits = self._root.limits
        return Workplace(
            run=self._context,
            agent=self._mind.name,
            model=self._mind.model,
            state=self._state,
            outbox=self._outbox,
            children=self._context.children or self._mind.children.below(self._context),
            hooks=ToolHooks(self._hooking(), self._turn, self._tally.total()),
            answer_seconds=limits.answer_seconds,
            grace_seconds=limits.grace_seconds,
        )

    def _hooking(self) -> Hooking:
        mind = self._mind
        return Hooking(mind.hooks, self._context, mind.name, mind.limits, mind.strays, self._state.read)

    async def _appended(
        self, hook: Callable[..., object], kind: type[AfterTurn] | type[BeforeStop]
    ) -> list[Appended]:
        added = await self._hooking().additions(hook, kind, self._messages, self._turn, self._tally.total())
        for entry in added:
            if isinstance(entry, MessageEntry):
                self._keep(entry.message)
        return [Appended(entry) for entry in added]

    def _nothing_follows(self) -> bool:
        """Whether the message just kept is the last of the run: nothing to run, nobody to be asked."""
        mind = self._mind
        more = mind.hooks.follow_an_answer or mind.output or not isinstance(self._context.inbox, NoInbox)
        return not self._open and (self._ending.reason is not None or not more)

    def _settle(self) -> Iterator[AgentEvent]:
        """Ends the step that is open and answers every call that has no result and that nobody waits for."""
        if self._step is not None:
            yield self._leave()
        if self._ending.reason in CALLS_LEFT_OPEN:
            return
        words = self._ending.why_not_run()
        for call in self._open.copy():
            result = result_of(
                call, words, is_error=True, clock=self._context.clock, sender_id=self._mind.name
            )
            yield ToolDone(self._keep(result))

    def _enter(self, step: str) -> StepStarted:
        self._step = step
        return StepStarted(step)

    def _leave(self) -> StepEnded:
        step, self._step = self._step, None
        assert step is not None
        return StepEnded(step)

    def _keep(self, message: Message) -> Message:
        self._messages.append(message)
        self._open = [call for call in self._open if call.id != message.call_id] + message.tool_calls()
        return message

    def _furnish(self, watch: Watch) -> Desk:
        root = self._root
        used = {call.id for message in self._messages for call in message.tool_calls()}
        return Desk(
            self._context,
            root.limits,
            watch,
            root.strays,
            self._tally,
            used,
            own_ids=root.condense is not None,
            sleep=root.sleep,
        )

    def _state_changed(self, patch: Patch, state: JsonValue) -> None:
        self._outbox.put(StateChanged(patch, state))
