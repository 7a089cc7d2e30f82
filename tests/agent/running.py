"""Ways to run an agent in a test and to look at what came of it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from app.agent.agent import Agent
from app.agent.context import RunContext, StopSignal
from app.agent.events import (
    AgentEvent,
    MessageDone,
    RunDone,
    StepEnded,
    StepStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ThinkingStarted,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolDone,
)
from app.agent.limits import Limits
from app.clock import Instant
from app.conversation.blocks import Text, Thinking, ToolCall
from app.conversation.messages import Message, Role, user_message
from app.conversation.outcomes import RunEnd

PATIENCE = 10.0
QUICK = Limits(retry_seconds=0, grace_seconds=0.05)


class StepClock:
    """A clock that goes on by one second with every look at it."""

    def __init__(self) -> None:
        self.seconds = 0

    def now(self) -> Instant:
        self.seconds += 1
        return self.seconds * 1_000_000_000


def context(
    *history: Message | str, stop: StopSignal | None = None, clock: StepClock | None = None
) -> RunContext:
    """A run of the server's over this history; texts are user messages."""
    messages = [user_message(given) if isinstance(given, str) else given for given in history]
    return RunContext(
        namespace="default",
        thread_id="thread-1",
        run_id="run-1",
        history=messages,
        sender_id="ann",
        state={"page": 3},
        clock=clock or StepClock(),
        stop=stop or StopSignal(),
    )


async def collect(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    """All events; they are checked to be well formed, `RunDone` last."""
    told = [event async for event in bounded(events)]
    check(told)
    return told


async def bounded(events: AsyncIterator[AgentEvent]) -> AsyncIterator[AgentEvent]:
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            yield event


async def answer(agent: Agent, *history: Message | str) -> list[AgentEvent]:
    return await collect(agent.respond(context(*history)))


def kept(events: Sequence[AgentEvent]) -> list[Message]:
    """What a server would store of a run."""
    return [event.message for event in events if isinstance(event, MessageDone | ToolDone)]


def end_of(events: Sequence[AgentEvent]) -> RunEnd:
    last = events[-1]
    assert isinstance(last, RunDone)
    return last.end


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.join_text() for message in messages]


def check(events: Sequence[AgentEvent]) -> None:
    """Whether the events tell one legal story: see `app.agent.events`."""
    assert [type(event) for event in events].count(RunDone) == 1
    assert isinstance(events[-1], RunDone)
    _check_steps(events)
    _check_deltas(events)
    _check_results(kept(events))


def _check_steps(events: Sequence[AgentEvent]) -> None:
    open_step: str | None = None
    for event in events:
        if isinstance(event, StepStarted):
            assert open_step is None
            open_step = event.name
        elif isinstance(event, StepEnded):
            assert open_step == event.name
            open_step = None
    assert open_step is None


def _check_deltas(events: Sequence[AgentEvent]) -> None:
    """What was shown in pieces is what is kept."""
    shown: dict[str, str] = {}
    still_open: set[str] = set()
    for event in events:
        match event:
            case ThinkingStarted(thinking_id=part) | ToolCallStarted(call_id=part):
                assert part not in shown
                shown[part] = ""
                still_open.add(part)
            case ThinkingEnded(thinking_id=part) | ToolCallEnded(call_id=part):
                still_open.remove(part)
            case ThinkingDelta(thinking_id=part, delta=delta) | ToolCallDelta(call_id=part, delta=delta):
                assert delta
                assert part in still_open
                shown[part] += delta
            case TextDelta(message_id=part, delta=delta):
                assert delta
                assert not still_open
                shown[part] = shown.get(part, "") + delta
            case MessageDone(message=message):
                assert not still_open
                _check_kept(message, shown)
            case _:
                pass


def _check_kept(message: Message, shown: dict[str, str]) -> None:
    written = [block.text for block in message.content if isinstance(block, Text)]
    assert all(text.strip() for text in written)
    assert shown.pop(message.id, "") == "".join(written)
    for block in message.content:
        if isinstance(block, Thinking):
            assert shown.pop(block.id) == block.text
        elif isinstance(block, ToolCall):
            assert shown.pop(block.id) == block.arguments
    assert not shown


def _check_results(messages: Sequence[Message]) -> None:
    """Every call has one result, behind it and in the order of the calls."""
    calls = [call.id for message in messages for call in message.tool_calls()]
    results = [message.call_id for message in messages if message.role is Role.TOOL_RESULT]
    assert results == calls
    assert len({message.id for message in messages}) == len(messages)
