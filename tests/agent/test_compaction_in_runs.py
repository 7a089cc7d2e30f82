"""Summaries in the middle of a conversation."""

from collections.abc import Sequence

import pytest

from app.agent.agent import Agent
from app.agent.compaction import Compaction
from app.agent.condensing import Condensing
from app.agent.context import StopSignal
from app.agent.events import AgentEvent, Appended, MessageDone
from app.agent.models.base import CallPiece, Finished, ModelError
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.window import Window
from app.conversation.entries import MessageEntry
from app.conversation.messages import Injected, Message, StopReason, Usage, assistant_message, user_message
from app.conversation.outcomes import EndReason
from tests.agent.running import QUICK, bounded, context, end_of, texts

LONG = "word " * 80
HEAD = "Summary of what was said before:\n\n"


def look() -> str:
    return "seen"


def agent_of(*replies: Reply, condense: Condensing | None) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(replies)
    return Agent("bot", model=model, tools=[look], limits=QUICK, condense=condense), model


async def told(agent: Agent, text: str) -> list[AgentEvent]:
    return [event async for event in bounded(agent.run(text))]


def summaries(events: Sequence[AgentEvent]) -> list[Message]:
    entries = [event.entry for event in events if isinstance(event, Appended)]
    return [entry.message for entry in entries if isinstance(entry, MessageEntry) and entry.message.covers]


def functional(threshold: int = 150) -> Compaction:
    return Compaction(threshold, keep_tokens=60, function=lambda messages: f"{len(messages)} in short")


@pytest.mark.requirement("AGT-09")
async def test_a_summary_is_appended_once_and_stands_for_what_it_covers_in_every_later_prompt() -> None:
    agent, model = agent_of(LONG, "two", "three", condense=functional())
    first = await told(agent, LONG)
    second = await told(agent, "second")
    third = await told(agent, "third")
    assert (summaries(first), summaries(third)) == ([], [])
    (summary,) = summaries(second)
    assert (summary.injected, summary.covers) == (Injected.META, agent.messages()[1].id)
    assert [texts(prompt.messages) for prompt in model.prompts[1:]] == [
        [HEAD + "2 in short", "second"],
        [HEAD + "2 in short", "second", "two", "third"],
    ]
    assert texts(agent.messages()) == [LONG, LONG, "second", HEAD + "2 in short", "two", "third", "three"]


@pytest.mark.requirement("AGT-09")
async def test_the_models_own_summary_is_billed_to_the_run_and_told_to_nobody() -> None:
    usage = Usage(input_tokens=900, output_tokens=10)
    summary = ["short story", Finished(StopReason.STOP, usage)]
    agent, model = agent_of(LONG, summary, "answer", condense=Compaction(150, keep_tokens=60))
    await told(agent, LONG)
    events = await told(agent, "go on")
    assert LONG.strip() in model.prompts[1].messages[0].join_text()
    assert [event.message.join_text() for event in events if isinstance(event, MessageDone)] == ["answer"]
    assert sum(part.input_tokens or 0 for _, _, part in end_of(events).usage) == 900
    (kept,) = summaries(events)
    assert "short story" in kept.join_text()


@pytest.mark.requirement("AGT-09")
@pytest.mark.parametrize("failure", [[ModelError("no")], [ValueError("no")], "", LONG * 9])
async def test_a_summary_that_fails_is_no_failure_of_the_run(failure: Reply) -> None:
    agent, model = agent_of(LONG, failure, "answer", condense=Compaction(150, keep_tokens=60))
    await told(agent, LONG)
    events = await told(agent, "go on")
    assert end_of(events).reason is EndReason.DONE
    assert summaries(events) == []
    assert texts(model.prompts[-1].messages) == [LONG, LONG, "go on"]


@pytest.mark.requirement("AGT-09")
async def test_a_summary_that_failed_is_tried_again_in_the_next_run_and_not_before() -> None:
    failing: Reply = [ModelError("no")]
    calling: Reply = [CallPiece("0", "{}", name="look", call_id="c")]
    replies = (LONG, failing, calling, "one", "in short", "two")
    agent, model = agent_of(*replies, condense=Compaction(150, keep_tokens=60))
    await told(agent, LONG)
    first = await told(agent, "go on")
    assert texts(model.prompts[3].messages) == [LONG, LONG, "go on", "", "seen"]
    assert (summaries(first), len(model.prompts)) == ([], 4)
    second = await told(agent, "and on")
    assert [summary.join_text() for summary in summaries(second)] == [HEAD + "in short"]
    assert end_of(second).reason is EndReason.DONE


@pytest.mark.requirement("AGT-09")
async def test_a_stop_while_the_summary_is_written_ends_the_run() -> None:
    stop = StopSignal()

    async def write(messages: Sequence[Message]) -> str:
        stop.request(EndReason.STOP_REQUESTED)
        return "late"

    agent, model = agent_of("never", condense=Compaction(150, keep_tokens=60, function=write))
    history = [user_message(LONG), assistant_message(LONG), user_message("go")]
    events = [event async for event in bounded(agent.respond(context(*history, stop=stop)))]
    assert end_of(events).reason is EndReason.STOP_REQUESTED
    assert model.prompts == []


@pytest.mark.requirement("AGT-09")
async def test_a_window_shows_the_newest_turns_and_keeps_all() -> None:
    agent, model = agent_of("a", "b", "c", condense=Window(turns=2))
    for text in ("1", "2", "3"):
        await told(agent, text)
    assert texts(model.prompts[2].messages) == ["2", "b", "3"]
    assert texts(agent.messages()) == ["1", "a", "2", "b", "3", "c"]
