"""An agent: a model with instructions and tools. A server drives it, or it is used alone in a program."""

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from importlib.metadata import version

from pydantic import JsonValue

from app.agent.context import RunContext
from app.agent.events import AgentEvent, Appended, MessageDone, RunDone, ToolDone
from app.agent.hooks import AfterTurnHook, BeforeCallHook, BeforeStopHook, Hooks, OneOrMore, as_hooks
from app.agent.limits import Limits
from app.agent.loop import Loop, Mind
from app.agent.models.base import Model
from app.agent.strays import Strays
from app.agent.toolbox import Toolbox
from app.agent.tools import ToolLike, as_tool
from app.clock import Clock, SystemClock, new_id
from app.conversation.messages import Message, Role, user_message
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from app.conversation.views import model_view, stored_view
from app.errors import Conflict, RunFailed

_log = logging.getLogger(__name__)

RunInput = str | Message | Sequence[Message]


class Agent:
    """Answers with a model, calling tools until the model is content.

    `respond` is one run over a history that the caller keeps; it remembers nothing. `run` and `ask` are for
    a program of one's own: they keep the history in memory, in order, and never take anything out of it.
    ValueError if two tools have one name; TypeError for a function that cannot be a tool or a hook.

    Hooks (see `app.agent.hooks`) are asked in the order in which they are given. With `attribution` the model
    is told who said what others said (see `app.agent.attribution`).
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
        attribution: bool = False,
    ) -> None:
        self._name = name
        self._model = model
        self._instructions = instructions
        self._tools = tuple(as_tool(given) for given in tools)
        self._description = description
        self._limits = limits or Limits()
        self._strays = Strays()
        self._toolbox = Toolbox(self._tools, self._limits, self._strays)
        self._history = list(history)
        self._clock = clock or SystemClock()
        self._attribution = attribution
        self._hooks = Hooks(
            as_hooks(before_call, "before_call"),
            as_hooks(after_turn, "after_turn"),
            as_hooks(before_stop, "before_stop"),
        )
        self._thread_id = new_id("thread")
        self._busy = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self._description

    @property
    def model(self) -> Model | None:
        return self._model

    def with_model(self, model: Model) -> "Agent":
        """The same agent with this model and a copy of its history."""
        return Agent(
            self._name,
            model=model,
            instructions=self._instructions,
            tools=self._tools,
            description=self._description,
            limits=self._limits,
            history=self._history,
            clock=self._clock,
            before_call=self._hooks.before_call,
            after_turn=self._hooks.after_turn,
            before_stop=self._hooks.before_stop,
            attribution=self._attribution,
        )

    def accepts(self) -> frozenset[str]:
        """The media its model takes beside text."""
        return self._model.inputs if self._model is not None else frozenset()

    def capabilities(self) -> Mapping[str, JsonValue]:
        """What is true of this agent, in the shape of AG-UI's AgentCapabilities."""
        identity: dict[str, JsonValue] = {
            "name": self._name,
            "type": "verbatim",
            "version": version("verbatim"),
        }
        if self._description:
            identity["description"] = self._description
        takes = self.accepts()
        seconds = self._limits.run_seconds
        execution: dict[str, JsonValue] = {"maxIterations": self._limits.turns}
        if seconds is not None:
            execution["maxExecutionTime"] = int(seconds * 1000)
        return {
            "identity": identity,
            "tools": {
                "supported": bool(self._tools),
                "items": self._tool_items(),
                "parallelCalls": bool(self._tools),
                "clientProvided": False,
            },
            "multimodal": {
                "input": {
                    **{kind: kind in takes for kind in ("image", "audio", "video")},
                    "pdf": "document" in takes,
                },
                "output": {"image": False, "audio": False},
            },
            "execution": execution,
        }

    def _tool_items(self) -> list[JsonValue]:
        return [
            {
                "name": definition.name,
                "description": definition.description,
                "parameters": definition.parameters,
            }
            for definition in self._toolbox.definitions
        ]

    def respond(self, context: RunContext) -> AsyncGenerator[AgentEvent, None]:
        """One run over the history in `context`. Ends with `RunDone` in every case: without a model it is a
        failure like any other, and the log says what to do."""
        if self._model is None:
            return self._give_up(context)
        mind = Mind(
            self._name,
            self._model,
            self._instructions,
            self._toolbox,
            self._limits,
            strays=self._strays,
            hooks=self._hooks,
            attribution=self._attribution,
        )
        return Loop(mind, context).events()

    async def _give_up(self, context: RunContext) -> AsyncGenerator[AgentEvent, None]:
        _log.error("run %s failed: %s", context.run_id, no_model(self._name))
        yield RunDone(RunEnd.by(EndReason.INTERNAL_ERROR))

    def messages(self) -> list[Message]:
        """The history so far, as a list of the caller's own."""
        return list(self._history)

    async def run(self, given: RunInput) -> AsyncGenerator[AgentEvent, None]:
        """Appends the input to the agent's own history, answers it and appends what comes of it, each
        message before its event is given out; what a hook appends for this run alone is not kept. Conflict
        if a run is under way; ValueError if the agent has no model."""
        if self._model is None:
            raise ValueError(no_model(self._name))
        if self._busy:
            raise Conflict(f"Agent {self._name} is answering already; wait for it.")
        self._busy = True
        try:
            self._history.extend(self._as_messages(given))
            context = RunContext(
                namespace="local",
                thread_id=self._thread_id,
                run_id=new_id("run"),
                history=self.messages(),
                clock=self._clock,
            )
            async with aclosing(self.respond(context)) as events:
                async for event in events:
                    if isinstance(event, MessageDone | ToolDone):
                        self._history.append(event.message)
                    elif isinstance(event, Appended):
                        self._history.extend(model_view(stored_view([event.entry])))
                    yield event
        finally:
            self._busy = False

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

    def _as_messages(self, given: RunInput) -> Sequence[Message]:
        if isinstance(given, str):
            return (user_message(given, clock=self._clock),)
        return (given,) if isinstance(given, Message) else tuple(given)


def no_model(name: str) -> str:
    """What to do about an agent without a model."""
    return (
        f"agent {name} has no model; make it with one (Agent({name!r}, model=…)), or name it in AGENTS to "
        "have the server's"
    )
