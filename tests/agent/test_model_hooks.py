"""Hooks before and after a model: they let it answer, answer in its place, or end the run."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.events import MessageDone, TextDelta
from app.agent.hooks import (
    AfterModel,
    BeforeCall,
    BeforeModel,
    Instead,
)
from app.agent.models.base import Finished, ModelError, TextPiece
from app.agent.models.scripted import ScriptedModel
from app.conversation.blocks import Text
from app.conversation.messages import Message, StopReason, Usage
from app.conversation.outcomes import EndReason
from tests.agent.hooked import Diary, call
from tests.agent.running import QUICK, answer, collect, end_of, kept, texts

CALL = [call("look", "c")]


def look() -> str:
    return "sunny"


async def test_one_object_is_asked_before_and_after_each_model_call_and_each_tool() -> None:
    diary = Diary()
    agent = Agent(
        "bot",
        model=ScriptedModel([CALL, "end"]),
        tools=[look],
        before_model=diary,
        after_model=[None, diary],
        before_tool=[diary, None],
        after_tool=diary,
    )
    assert end_of(await answer(agent, "go")).reason is EndReason.DONE
    model = ["BeforeModel", "AfterModel"]
    assert diary.notes == [*model, "BeforeTool", "AfterTool", *model]


async def test_no_hook_at_all_may_be_given_as_none() -> None:
    agent = Agent("bot", model=ScriptedModel(["end"]), before_model=None, after_tool=[None])
    told = await answer(agent, "go")
    assert [event.last for event in told if isinstance(event, MessageDone)] == [True]


async def test_an_answer_in_the_models_place_is_shown_and_kept_and_no_provider_is_called() -> None:
    seen: list[AfterModel] = []
    shaped: list[BeforeCall] = []

    def never(_: BeforeModel) -> Instead:
        raise AssertionError("asked although another answered")

    async def cached(_: BeforeModel) -> Instead:
        return Instead("from the cache")

    model = ScriptedModel(["a provider", "two"])
    agent = Agent(
        "bot",
        model=model,
        before_model=[lambda _: None, cached, never],
        after_model=seen.append,
        before_call=shaped.append,
    )
    told = await collect(agent.run("go"))
    (message,) = kept(told)
    assert "".join(e.delta for e in told if isinstance(e, TextDelta)) == "from the cache"
    assert texts(agent.messages()) == ["go", "from the cache"]
    assert (message.sender_id, message.stop_reason, message.usage) == ("bot", StopReason.STOP, None)
    assert message.provider == "hook"
    assert [after.message for after in seen] == [message]
    assert seen[0].usage == Usage()
    assert (model.prompts, shaped) == ([], [])
    assert end_of(told).reason is EndReason.DONE
    assert end_of(told).usage == ()


@pytest.mark.parametrize("nothing", [Instead(), Instead(""), Instead([]), Instead([Text(text="")])])
async def test_an_answer_with_nothing_in_it_is_an_empty_answer(nothing: Instead) -> None:
    seen: list[Message | None] = []
    model = ScriptedModel(["a provider"])
    agent = Agent(
        "bot", model=model, before_model=lambda _: nothing, after_model=lambda g: seen.append(g.message)
    )
    told = await answer(agent, "go")
    assert end_of(told).reason is EndReason.DONE
    assert kept(told) == []
    assert model.prompts == []
    assert seen == [None]


async def test_text_blocks_in_the_models_place_are_one_clean_text() -> None:
    blocks = (Text(text="a\ud800"), Text(text="b\x00"))
    agent = Agent("bot", model=ScriptedModel([]), before_model=lambda _: Instead(blocks))
    (message,) = kept(await answer(agent, "go"))
    assert [block.to_json() for block in message.content] == [Text(text="a\ufffdb\ufffd").to_json()]


async def test_a_hook_may_answer_one_call_and_leave_the_next_to_the_model() -> None:
    def second(given: BeforeModel) -> Instead | None:
        return Instead("enough") if given.turn == 2 else None

    model = ScriptedModel([CALL, "never"])
    told = await answer(Agent("bot", model=model, tools=[look], before_model=second), "go")
    assert texts(kept(told)) == ["", "sunny", "enough"]
    assert len(model.prompts) == 1


async def test_a_hook_is_told_of_the_run_and_of_what_was_used_up() -> None:
    before: list[BeforeModel] = []
    after: list[AfterModel] = []
    reply = [*CALL, Finished(StopReason.TOOL_USE, Usage(total_tokens=154))]
    agent = Agent(
        "bot",
        model=ScriptedModel([reply, "end"]),
        tools=[look],
        before_model=before.append,
        after_model=after.append,
    )
    await answer(agent, "go")
    first = before[0]
    assert (first.namespace, first.thread_id, first.run_id) == ("default", "thread-1", "run-1")
    assert (first.agent, first.sender_id, first.state) == ("bot", "ann", {"page": 3})
    assert [given.turn for given in before] == [given.turn for given in after] == [1, 2]
    assert [given.usage.total_tokens for given in before] == [None, 154]
    assert [given.usage.total_tokens for given in after] == [154, 154]


async def test_after_model_is_asked_behind_the_kept_message_which_is_not_called_the_last() -> None:
    agent = Agent("bot", model=ScriptedModel(["end"]), after_model=lambda _: None)
    told = await answer(agent, "go")
    assert [event.last for event in told if isinstance(event, MessageDone)] == [False]


@pytest.mark.parametrize(
    "reply",
    [["x", ModelError("no")], ["x", ValueError("no")], ["x", Finished(StopReason.LENGTH)]],
)
async def test_after_model_sees_no_answer_that_failed_or_was_cut(reply: Sequence[Any]) -> None:
    diary = Diary()
    agent = Agent("bot", model=ScriptedModel([reply]), after_model=diary, limits=QUICK)
    await answer(agent, "go")
    assert diary.notes == []


async def test_what_hooks_do_to_what_they_are_given_changes_nothing() -> None:
    reply = [TextPiece("x", provider={"n": 1})]

    def spoil(given: BeforeModel | AfterModel) -> None:
        cast(dict[str, Any], given.state)["page"] = 99
        if isinstance(given, AfterModel):
            assert given.message is not None
            cast(dict[str, Any], cast(Text, given.message.content[0]).provider)["n"] = 99

    def look_again(given: BeforeModel | AfterModel) -> None:
        assert given.state == {"page": 3}

    hooks = [spoil, look_again]
    agent = Agent("bot", model=ScriptedModel([reply]), before_model=hooks, after_model=hooks)
    told = await answer(agent, "go")
    assert end_of(told).reason is EndReason.DONE
    (message,) = kept(told)
    assert message.content == (Text(text="x", provider={"n": 1}),)
