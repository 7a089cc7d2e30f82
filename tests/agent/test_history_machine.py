"""Whatever happens to an agent, in whatever order: its history only grows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.context import RunContext
from app.agent.events import AgentEvent, RunDone
from app.agent.hooks import Abort, AfterTurn, BeforeCall, BeforeStop
from app.agent.limits import Limits
from app.agent.models.base import CallPiece, Finished, ModelError
from app.agent.models.scripted import CUT, ScriptedModel
from app.agent.pairing import unanswered_calls
from app.agent.tools import ToolContext, tool
from app.conversation.interrupts import Answer, Interrupt
from app.conversation.messages import Injected, Message, Role, StopReason, user_message
from app.conversation.outcomes import EndReason

LIMITS = Limits(retries=0, retry_seconds=0, grace_seconds=0.05, turns=6)
REPLIES: list[Any] = [
    "said something",
    "said " * 60,
    [CallPiece("0", "{}", name="look")],
    [CallPiece("0", "{}", name="pay"), CallPiece("1", "{}", name="look")],
    [CallPiece("0", "{}", name="ask")],
    [CallPiece("0", "{", name="fail"), CallPiece("1", "{}", name="fail")],
    ["cut", CUT],
    ["half", ModelError("no")],
    [ValueError("no")],
    ["long", Finished(StopReason.LENGTH)],
]
DEEDS = ("nothing", "add", "insist", "drop", "raise", "abort")


class Stopping(Agent):
    """Asks its own run to stop after so many events."""

    after: int | None = None

    def respond(self, context: RunContext) -> Any:
        return self._cut(super().respond(context), context)

    async def _cut(self, events: Any, context: RunContext) -> AsyncIterator[AgentEvent]:
        count = 0
        async for event in events:
            count += 1
            if count == self.after:
                context.stop.request(EndReason.STOP_REQUESTED)
            yield event


class Histories(RuleBasedStateMachine):
    """Random turns of one agent and, now and then, of a fork of it."""

    def __init__(self) -> None:
        super().__init__()
        self.deed = "nothing"
        self.seen: list[str] = []
        self.waiting: tuple[Interrupt, ...] = ()
        self.runner = asyncio.Runner()

    def teardown(self) -> None:
        self.runner.close()

    @initialize()
    def begin(self) -> None:
        self.agent = self.made([])

    def made(self, history: list[Message]) -> Stopping:
        def look(context: ToolContext) -> str:
            context.patch_state([{"op": "add", "path": "/n", "value": 1}])
            context.remind("aside")
            return "seen"

        @tool(approval=True)
        def pay() -> str:
            return "paid"

        def ask(context: ToolContext) -> str:
            return str(context.ask("Why?"))

        def fail() -> str:
            raise RuntimeError("no")

        return Stopping(
            "bot",
            model=ScriptedModel([]),
            tools=[look, pay, ask, fail],
            limits=LIMITS,
            history=history,
            before_call=self.shapes,
            after_turn=self.adds,
            before_stop=self.insists,
            condense=Compaction(120, keep_tokens=40, function=lambda _: "in short"),
        )

    def shapes(self, call: BeforeCall) -> list[Message] | None:
        return list(call.messages[1:]) if self.deed == "drop" else None

    def adds(self, turn: AfterTurn) -> list[Message] | None:
        if self.deed == "raise":
            raise RuntimeError("no")
        if self.deed == "abort":
            raise Abort("No.")
        if self.deed == "add":
            return [
                user_message("meta", injected=Injected.META),
                user_message("x", injected=Injected.EPHEMERAL),
            ]
        return None

    def insists(self, stop: BeforeStop) -> list[Message] | None:
        return [user_message("once more", injected=Injected.META)] if self.deed == "insist" else None

    def play(
        self,
        replies: list[Any],
        deed: str,
        stop_after: int | None,
        run: Callable[[], Any],
        steer: bool = False,
    ) -> None:
        self.deed, self.agent.after = deed, stop_after
        self.agent = self._with(ScriptedModel(replies))
        self.runner.run(self._play(run, steer))

    def _with(self, model: ScriptedModel) -> Stopping:
        agent, self.agent._model = self.agent, model  # pyright: ignore[reportPrivateUsage]
        return agent

    async def _play(self, run: Callable[[], Any], steer: bool) -> None:
        self.waiting = ()
        async for event in run():
            if steer:
                self.agent.steer("meanwhile")
                steer = False
            if isinstance(event, RunDone):
                self.waiting = event.end.interrupts

    @precondition(lambda self: not self.waiting)
    @rule(
        replies=st.lists(st.sampled_from(REPLIES), max_size=4),
        deed=st.sampled_from(DEEDS),
        stop_after=st.none() | st.integers(1, 12),
        steer=st.booleans(),
    )
    def say(self, replies: list[Any], deed: str, stop_after: int | None, steer: bool) -> None:
        before = len(self.agent.messages())
        self.play(replies, deed, stop_after, lambda: self.agent.run("go on"), steer)
        assert len(self.agent.messages()) > before

    @precondition(lambda self: bool(self.waiting))
    @rule(
        replies=st.lists(st.sampled_from(REPLIES), max_size=3),
        cancelled=st.booleans(),
        some=st.booleans(),
        stop_after=st.none() | st.integers(1, 6),
    )
    def answer(self, replies: list[Any], cancelled: bool, some: bool, stop_after: int | None) -> None:
        asked = self.waiting[:1] if some else self.waiting
        answers = [Answer(one.id, cancelled, None if cancelled else {"approved": True}) for one in asked]
        self.play(replies, "nothing", stop_after, lambda: self.agent.resume(answers))

    @precondition(lambda self: not self.waiting)
    @rule(share=st.floats(0, 1))
    def fork(self, share: float) -> None:
        """The fork's history is a copy: what happens to it leaves the first one as it was."""
        history = self.agent.messages()
        before = [message.to_json() for message in history]
        copied = history[: int(len(history) * share)]
        first, self.agent = self.agent, self.made(copied)
        self.play(["fork"], "add", None, lambda: self.agent.run("fork"))
        assert [message.to_json() for message in self.agent.messages()][: len(copied)] == before[
            : len(copied)
        ]
        self.agent = first
        assert [message.to_json() for message in first.messages()] == before

    @invariant()
    def the_old_list_is_a_prefix_of_the_new_one(self) -> None:
        if not hasattr(self, "agent"):
            return
        now = [message.to_json() for message in self.agent.messages()]
        assert now[: len(self.seen)] == self.seen
        self.seen = now
        self.every_call_has_one_result_unless_it_waits(self.agent.messages())

    def every_call_has_one_result_unless_it_waits(self, messages: list[Message]) -> None:
        asked = {one.call_id for one in self.waiting}
        assert {call.id for call in unanswered_calls(messages)} == asked
        calls = [call.id for message in messages for call in message.tool_calls()]
        results = [message.call_id for message in messages if message.role is Role.TOOL_RESULT]
        assert sorted(map(str, results)) == sorted(call for call in calls if call not in asked)
        assert len({message.id for message in messages}) == len(messages)


Machine = pytest.mark.requirement("AGT-04")(Histories.TestCase)
Machine.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
