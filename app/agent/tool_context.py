"""What a tool is given of the run that calls it."""

import asyncio
import copy
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import JsonValue

from app.agent.context import ChildHandle, ChildOrder, Children, RunContext, Runnable
from app.agent.events import Appended, SubagentEnded, SubagentStarted, ToolProgress
from app.agent.models.base import Model
from app.agent.outbox import Outbox
from app.agent.pausing import Memory, Resumed, bubbled, expiry, question
from app.agent.records import checked_record
from app.agent.scrub import scrub
from app.agent.shared_state import PatchRefused, SharedState
from app.clock import Clock
from app.conversation.blocks import Reminder, ToolCall
from app.conversation.entries import CustomEntry, TransientEntry
from app.conversation.interrupts import Answer, ChildRun, Interrupt
from app.conversation.outcomes import EndReason, RunStatus
from app.errors import AppError


class ToolError(Exception):
    """Raised by a tool: the message is for the model. The text of any other exception is not."""


class NeedsAnswer(BaseException):
    """A tool waits for a person. No error, so that a tool which catches all of these does not catch it."""

    def __init__(self, interrupts: Sequence[Interrupt]) -> None:
        super().__init__("the call waits for an answer")
        self.interrupts = tuple(interrupts)


class Place(Protocol):
    """The run, as far as its tools reach into it."""

    @property
    def run(self) -> RunContext: ...

    @property
    def agent(self) -> str: ...

    @property
    def model(self) -> Model: ...

    @property
    def state(self) -> SharedState: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def children(self) -> Children: ...

    @property
    def answer_seconds(self) -> float | None: ...

    @property
    def grace_seconds(self) -> float: ...


class ToolContext:
    """The run, as one call of a tool sees it: annotate one parameter with this type.

    Its methods may be used from any thread and are over when the call is: RuntimeError then.
    """

    def __init__(self, place: Place, call: ToolCall, resumed: Resumed) -> None:
        self._place = place
        self._call = call
        self._memory = resumed.memory
        self._given = list(resumed.memory.given)
        self._answers = resumed.answers
        self._asked = 0
        self._reports = 0
        self._reminders: list[Reminder] = []
        self._one_at_a_time = asyncio.Lock()
        self._needed: NeedsAnswer | None = None
        """Set once the call waits for an answer: no other agent is asked then."""
        self._over = False

    @property
    def namespace(self) -> str:
        return self._place.run.namespace

    @property
    def thread_id(self) -> str:
        return self._place.run.thread_id

    @property
    def run_id(self) -> str:
        return self._place.run.run_id

    @property
    def call_id(self) -> str:
        return self._call.id

    @property
    def sender_id(self) -> str | None:
        """Who started the run."""
        return self._place.run.sender_id

    @property
    def clock(self) -> Clock:
        return self._place.run.clock

    @property
    def model(self) -> Model:
        """What the agent that calls the tool answers with."""
        return self._place.model

    @property
    def state(self) -> JsonValue:
        """A copy of the thread's shared state as it is now; changing it changes nothing."""
        return self._place.state.read()

    @property
    def reminders(self) -> tuple[Reminder, ...]:
        """What was attached to the result so far."""
        return tuple(self._reminders)

    def patch_state(self, operations: Sequence[Mapping[str, JsonValue]]) -> JsonValue:
        """Applies operations of RFC 6902 to the shared state, all or none, and gives a copy of the result.
        Clients see it at once; it is stored with the call's result. ToolError if it does not fit."""
        self._check()
        try:
            return self._place.state.patch(operations)
        except PatchRefused as refused:
            raise ToolError(f"The shared state was not changed: {refused}.") from refused

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Tells clients how far the call is. Nothing of it is stored. ValueError for what is not a finite
        number."""
        self._check()
        if not _is_finite(progress) or not (total is None or _is_finite(total)):
            raise ValueError("progress is told in finite numbers")
        self._reports += 1
        self._place.outbox.put(
            ToolProgress(self._call.id, self._call.name, self._reports, progress, total, scrub(message))
        )

    def remind(self, text: str, origin: str = "") -> None:
        """Attaches to the result what the model shall read and people shall not."""
        self._check()
        if text:
            self._reminders.append(Reminder(text=scrub(text), origin=scrub(origin)))

    def record(self, name: str, value: JsonValue, *, transient: bool = False) -> None:
        """Puts an application's record beside the messages: stored, and shown to clients as an activity. A
        transient one is shown to those who follow the run and then gone. ValueError if it is no record."""
        self._check()
        name, value = checked_record(name, value)
        if transient:
            self._place.outbox.put(Appended(TransientEntry(name, value)))
            return
        entry = CustomEntry(name, value, created_at=self.clock.now(), sender_id=self._place.agent)
        self._place.outbox.put(Appended(entry))

    def ask(self, message: str, schema: Mapping[str, JsonValue] | None = None) -> JsonValue:
        """Asks a person, and gives what they answer, of the form of the JSON schema.

        The run pauses: nothing behind the call of this method is done now. Once there is an answer the tool
        is called again from its start with the same arguments, and each `ask` that was answered returns at
        once, unchanged by what the tool did to it before. So do what must be done once behind the last of
        them.
        """
        self._check()
        given = self._next()
        if given is not None:
            return copy.deepcopy(given[0])
        for interrupt, answer in self._answers:
            if interrupt.child is None:
                self._answers = ()
                return copy.deepcopy(self._remember(answer.payload))
        expires_at = expiry(self.clock, self._place.answer_seconds)
        raise NeedsAnswer([question(self._call.id, scrub(message), schema, self._known(), expires_at)])

    async def run_agent(self, agent: Runnable, text: str, *, group_id: str | None = None) -> str:
        """Has another agent answer, in a hidden thread of its own below this one, and gives its answer.

        Stopping this run stops that one; what it asks of people, this run asks. As with `ask` the tool is
        then called again, and the other agent goes on where it paused. Several at once are asked one after
        the other, for what each gave is known again by its place. ToolError if it fails or is asked nothing.
        """
        if not text.strip():
            raise ToolError(f"Agent {agent.name} was asked nothing.")
        async with self._one_at_a_time:
            self._check()
            if self._needed is not None:
                raise self._needed
            given = self._next()
            return str(given[0] if given is not None else await self._asked_agent(agent, text, group_id))

    async def _asked_agent(self, agent: Runnable, text: str, group_id: str | None) -> JsonValue:
        child, answers = self._paused_child()
        order = ChildOrder(
            agent, self._call.id, "" if child else scrub(text), group_id, resumes=child, answers=answers
        )
        try:
            handle = await self._place.children.start(order)
        except AppError as error:
            raise ToolError(f"Agent {agent.name} could not be asked: {error.public}") from error
        return self._remember(await self._answer_of(agent, handle))

    def _paused_child(self) -> tuple[ChildRun | None, tuple[Answer, ...]]:
        child = self._answers[0][0].child if self._answers else None
        if child is None:
            return None, ()
        answers = tuple(answer for _, answer in self._answers)
        self._answers = ()
        return child, answers

    async def _answer_of(self, agent: Runnable, handle: ChildHandle) -> str:
        outbox = self._place.outbox
        outbox.put(
            SubagentStarted(handle.run_id, handle.thread_id, agent.name, agent.description, self._call.id)
        )
        try:
            end, answer = await handle.wait()
        except asyncio.CancelledError:
            await self._take_down(handle)
            raise
        outbox.put(SubagentEnded(handle.run_id, end))
        if end.status is RunStatus.PAUSED:
            child = ChildRun(thread_id=handle.thread_id, run_id=handle.run_id)
            known = self._known()
            self._needed = NeedsAnswer([bubbled(one, self._call.id, known, child) for one in end.interrupts])
            raise self._needed
        if end.status is not RunStatus.COMPLETED:
            words = end.error.message if end.error else "It was stopped before its answer was complete."
            raise ToolError(f"Agent {agent.name} gave no answer. {words}")
        return answer

    async def _take_down(self, handle: ChildHandle) -> None:
        """Stops the other agent and gives it the time that this call has left. It ends by itself anyhow."""
        handle.stop(self._place.run.stop.reason or EndReason.STOP_REQUESTED)
        waiting = asyncio.ensure_future(handle.wait())
        try:
            await asyncio.wait({waiting}, timeout=self._place.grace_seconds / 2)
        finally:
            if waiting.done():
                self._place.outbox.put(SubagentEnded(handle.run_id, waiting.result()[0]))
            else:
                waiting.cancel()

    def _next(self) -> tuple[JsonValue] | None:
        """What this question was answered with before, if it was."""
        at, self._asked = self._asked, self._asked + 1
        return (self._given[at],) if at < len(self._given) else None

    def _remember(self, answer: JsonValue) -> JsonValue:
        self._given.append(answer)
        return answer

    def _known(self) -> Memory:
        return Memory(self._memory.approved, self._memory.arguments, tuple(self._given))

    def close(self) -> None:
        """The call is over. For the one who runs the tool."""
        self._over = True

    def _check(self) -> None:
        if self._over:
            raise RuntimeError("the call is over; its context cannot be used any more")


def _is_finite(value: object) -> bool:
    """Whether every client can read it as a number: JSON has no others, and readers take them as doubles."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max
