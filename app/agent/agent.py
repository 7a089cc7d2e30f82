"""An agent: a model with instructions and tools. A server drives it, or it is used alone in a program."""

import copy
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing

from pydantic import JsonValue

from app.agent.capabilities import capabilities_of
from app.agent.condensing import Condensing
from app.agent.context import RunContext
from app.agent.events import AgentEvent, Appended, MessageDone, RunDone, ToolDone
from app.agent.handoff import by_tool
from app.agent.hooks import (
    AfterModelHook,
    AfterToolHook,
    AfterTurnHook,
    BeforeCallHook,
    BeforeModelHook,
    BeforeStopHook,
    BeforeToolHook,
    Hooks,
    OneOrMore,
    as_hooks,
)
from app.agent.inbox import MemoryInbox
from app.agent.limits import Limits
from app.agent.loop import Loop
from app.agent.mind import Mind
from app.agent.models.base import Model
from app.agent.strays import Strays
from app.agent.structured import Form, Output
from app.agent.subagent import LocalChildren, agent_tool
from app.agent.toolbox import Toolbox
from app.agent.tools import Tool, ToolLike
from app.clock import Clock, SystemClock, new_id
from app.conversation.entries import CustomEntry, Entry, MessageEntry, TransientEntry
from app.conversation.interrupts import Answer
from app.conversation.messages import Message, Role, user_message
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from app.conversation.recall import EVERYTHING, Recall
from app.conversation.views import model_view, stored_view
from app.errors import Conflict, RunFailed

_log = logging.getLogger(__name__)

Part = str | Message | CustomEntry | TransientEntry
RunInput = Part | Sequence[Part]


class Agent:
    """Answers with a model, calling tools until the model is content.

    `respond` is one run over a history that the caller keeps; it remembers nothing. `run`, `resume` and `ask`
    are for a program of one's own: they keep the history in memory, in order, and never take anything out of
    it. ValueError if two tools have one name; TypeError for a function that cannot be a tool or a hook, and
    for an `output` that is no form of a JSON object.

    Hooks (see `app.agent.hooks`) are asked in the order in which they are given. With `attribution` the model
    is told who said what others said (see `app.agent.attribution`); `steering_notice` tells it which messages
    came while it was at work. `condense` keeps prompts short (see `app.agent.compaction` and
    `app.agent.window`). `output` is the form of the last answer. `handoffs` are agents that may take
    over; give a function where they hand over in a circle. A `sticky` agent leaves the next run to whoever
    answered last.
    """

    def __init__(
        self,
        name: str,
        *,
        model: Model | None = None,
        instructions: str = "",
        tools: Iterable[ToolLike] = (),
        description: str = "",
        limits: Limits | None = None,
        history: Iterable[Message] = (),
        clock: Clock | None = None,
        before_call: OneOrMore[BeforeCallHook] = (),
        after_turn: OneOrMore[AfterTurnHook] = (),
        before_stop: OneOrMore[BeforeStopHook] = (),
        before_model: OneOrMore[BeforeModelHook] = (),
        after_model: OneOrMore[AfterModelHook] = (),
        before_tool: OneOrMore[BeforeToolHook] = (),
        after_tool: OneOrMore[AfterToolHook] = (),
        attribution: bool = False,
        steering_notice: bool = True,
        output: Form | None = None,
        condense: Condensing | None = None,
        handoffs: Sequence["Agent"] | Callable[[], Sequence["Agent"]] = (),
        sticky: bool = False,
    ) -> None:
        self._name = name
        self._model = model
        self._instructions = instructions
        self._description = description
        self._limits = limits or Limits()
        self._strays = Strays()
        self._toolbox = Toolbox(tools, self._limits, self._strays)
        self._history = list(history)
        self._clock = clock or SystemClock()
        self._attribution = attribution
        self._steering_notice = steering_notice
        self._condense = condense
        self._output = None if output is None else Output(output)
        self._handoffs = handoffs
        self._sticky = sticky
        self._hooks = Hooks(
            as_hooks(before_call, "before_call"),
            as_hooks(after_turn, "after_turn"),
            as_hooks(before_stop, "before_stop"),
            as_hooks(before_model, "before_model"),
            as_hooks(after_model, "after_model"),
            as_hooks(before_tool, "before_tool"),
            as_hooks(after_tool, "after_tool"),
        )
        if not callable(handoffs):
            self._handoff_tools()
        self._children = LocalChildren()
        self._thread_id = new_id("thread")
        self._inbox: MemoryInbox | None = None
        self._paused: RunEnd | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self._description

    @property
    def model(self) -> Model | None:
        return self._model

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def toolbox(self) -> Toolbox:
        return self._toolbox

    @property
    def handoffs(self) -> Sequence["Agent"]:
        """The agents that may take over from it."""
        return self._handoffs() if callable(self._handoffs) else self._handoffs

    @property
    def gives_structure(self) -> bool:
        """Whether its last answer has a form that was asked for."""
        return self._output is not None

    def with_model(self, model: Model) -> "Agent":
        """The same agent with this model and a copy of its history."""
        other = copy.copy(self)
        other._model = model
        other._history = list(self._history)
        other._thread_id = new_id("thread")
        other._children = LocalChildren()
        other._inbox = None
        return other

    def as_tool(
        self, *, name: str | None = None, description: str | None = None, group_id: str | None = None
    ) -> Tool:
        """This agent as a tool of another one, with its name and description if no others are given.

        Each call is a run of a hidden thread below the caller's; `group_id` is that thread's group instead of
        the caller's thread id.
        """
        about = description or self._description or f"Asks the agent {self._name}."

        def lent(model: Model) -> Agent:
            return self if self._model is not None else self.with_model(model)

        return agent_tool(lent, name=name or self._name, description=about, group_id=group_id)

    def accepts(self) -> frozenset[str]:
        """The media its model takes beside text."""
        return self._model.inputs if self._model is not None else frozenset()

    def capabilities(self) -> Mapping[str, JsonValue]:
        """What is true of this agent, in the shape of AG-UI's AgentCapabilities."""
        return capabilities_of(self)

    def recall(self) -> Recall:
        """How much of a branch it is to be given."""
        return EVERYTHING if self._condense is None else self._condense.recall()

    def respond(self, context: RunContext) -> AsyncGenerator[AgentEvent, None]:
        """One run over the history in `context`. Ends with `RunDone` in every case: without a model it is a
        failure like any other, and the log says what to do."""
        if self._model is None:
            return self._give_up(context)
        return Loop(self.mind(self._model), context).events()

    def mind(self, model: Model) -> Mind:
        """What the loop answers with. `model` is that of an agent without one of its own, and passes on to
        those that it hands over to."""

        def targets() -> dict[str, Mind]:
            return {name: agent.mind(model) for name, agent in self._handoff_tools().items()}

        return Mind(
            self._name,
            self._model or model,
            self._instructions,
            self._toolbox,
            self._limits,
            strays=self._strays,
            hooks=self._hooks,
            attribution=self._attribution,
            steering_notice=self._steering_notice,
            output=self._output,
            condense=self._condense,
            description=self._description,
            sticky=self._sticky,
            children=self._children,
            handoffs=targets,
        )

    def _handoff_tools(self) -> Mapping[str, "Agent"]:
        return by_tool(self.handoffs, [tool.name for tool in self._toolbox.definitions])

    async def _give_up(self, context: RunContext) -> AsyncGenerator[AgentEvent, None]:
        _log.error("run %s failed: %s", context.run_id, no_model(self._name))
        yield RunDone(RunEnd.by(EndReason.INTERNAL_ERROR))

    def messages(self) -> list[Message]:
        """The history so far, as a list of the caller's own."""
        return list(self._history)

    async def run(self, given: RunInput) -> AsyncGenerator[AgentEvent, None]:
        """Appends the input to the agent's own history, answers it and appends what comes of it, each
        message before its event is given out; what a hook appends for this run alone is not kept. Application
        records among the input reach no model and are given out as they came. Conflict if a run is under way
        or waits for answers; ValueError if the agent has no model."""
        if self._paused is not None:
            raise Conflict(f"Agent {self._name} waits for answers; resume it.")
        async with aclosing(self._run(self._entries(given), None, ())) as events:
            async for event in events:
                yield event

    async def resume(self, answers: Iterable[Answer]) -> AsyncGenerator[AgentEvent, None]:
        """Takes up a run that paused, with answers to the interrupts of its end (see `RunDone`); a question
        without one is asked again. All else is as with `run`. Conflict if nothing waits."""
        if self._paused is None:
            raise Conflict(f"Agent {self._name} waits for nothing.")
        async with aclosing(self._run((), self._paused, answers)) as events:
            async for event in events:
                yield event

    def steer(self, given: str | Message) -> Message:
        """Says something to the run that is under way: it reads it before its next model call, and does not
        end without having read it. Conflict if none is under way."""
        if self._inbox is None:
            raise Conflict(f"Agent {self._name} is not answering; use run.")
        message = user_message(given, clock=self._clock) if isinstance(given, str) else given
        self._inbox.put(message)
        return message

    async def _run(
        self, entries: Sequence[Entry], paused: RunEnd | None, answers: Iterable[Answer]
    ) -> AsyncGenerator[AgentEvent, None]:
        if self._model is None:
            raise ValueError(no_model(self._name))
        if self._inbox is not None:
            raise Conflict(f"Agent {self._name} is answering already; wait for it.")
        self._inbox, self._paused = MemoryInbox(), None
        try:
            self._history.extend(model_view(entries))
            for entry in entries:
                if not isinstance(entry, MessageEntry):
                    yield Appended(entry)
            context = RunContext(
                namespace="local",
                thread_id=self._thread_id,
                run_id=new_id("run"),
                history=self.messages(),
                clock=self._clock,
                interrupts=paused.interrupts if paused is not None else (),
                answers={answer.interrupt_id: answer for answer in answers},
                inbox=self._inbox,
            )
            async with aclosing(self.respond(context)) as events:
                async for event in events:
                    self._note(event)
                    yield event
        finally:
            self._inbox = None

    def _note(self, event: AgentEvent) -> None:
        if isinstance(event, MessageDone | ToolDone):
            self._history.append(event.message)
        elif isinstance(event, Appended):
            self._history.extend(model_view(stored_view([event.entry])))
        elif isinstance(event, RunDone) and event.end.interrupts:
            self._paused = event.end

    async def ask(self, given: RunInput) -> Message | None:
        """Runs to the end and gives the last assistant message of this run; None if the model said nothing.

        RunFailed, with the end's public sentence, if the run failed or was stopped: what was said by then is
        in `messages()`. Otherwise as `run`.
        """
        answer: Message | None = None
        end = RunEnd.by(EndReason.INTERNAL_ERROR)
        async with aclosing(self.run(given)) as events:
            async for event in events:
                if isinstance(event, MessageDone) and event.message.role is Role.ASSISTANT:
                    answer = event.message
                elif isinstance(event, RunDone):
                    end = event.end
        if end.status in (RunStatus.FAILED, RunStatus.STOPPED):
            words = end.error.message if end.error else "The run was stopped before its answer was complete."
            raise RunFailed(end.reason.value, words)
        return answer

    def _entries(self, given: RunInput) -> Sequence[Entry]:
        parts = (given,) if isinstance(given, Part) else given
        return [self._entry(part) for part in parts]

    def _entry(self, part: Part) -> Entry:
        if isinstance(part, str):
            part = user_message(part, clock=self._clock)
        return MessageEntry(part) if isinstance(part, Message) else part


def no_model(name: str) -> str:
    """What to do about an agent without a model."""
    return (
        f"agent {name} has no model; make it with one (Agent({name!r}, model=…)), or name it in AGENTS to "
        "have the server's"
    )
