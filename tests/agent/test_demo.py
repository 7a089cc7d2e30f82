"""The built-in agent on the demo model: what a newcomer sees first."""

import asyncio
import itertools

import pytest

from app.agent.agent import Agent
from app.agent.builtin import assistant
from app.agent.events import TextDelta, ThinkingDelta, ToolCallStarted
from app.agent.models.demo import DemoModel
from app.conversation.blocks import Image, Text, UrlSource
from app.conversation.messages import Injected, StopReason, user_message
from app.conversation.outcomes import EndReason
from tests.agent.running import answer, collect, context, end_of, kept, texts


def demo() -> Agent:
    return assistant(DemoModel(delay=0, pause=0))


async def said(*asked: str) -> str:
    return texts(kept(await answer(demo(), *asked)))[-1]


async def test_a_greeting_is_answered_with_what_can_be_tried_in_many_pieces() -> None:
    told = await answer(demo(), "Hello!")
    assert "demo model" in texts(kept(told))[0]
    assert len([event for event in told if isinstance(event, TextDelta)]) > 20


async def test_two_things_asked_at_once_are_two_calls_in_one_answer() -> None:
    told = await answer(demo(), "What time is it in Tokyo, and calculate (6 + 1) * 7")
    message, time, result, final = kept(told)
    assert [call.name for call in message.tool_calls()] == ["current_time", "calculate"]
    assert "JST" in time.join_text()
    assert result.join_text() == "49"
    assert "49" in final.join_text()


async def test_a_tool_that_fails_is_reported() -> None:
    assert "failed" in await said("calculate 1 / 0")


@pytest.mark.parametrize(
    ("asked", "name", "arguments"),
    [
        ("weather in Basel please", "get_weather", '{"city": "Basel"}'),
        ("the stock level, 12 of them", "stock", '{"number": 12}'),
        ("paint it blue", "paint", '{"colour": "blue", "now": true}'),
    ],
)
async def test_tools_of_ones_own_are_called_when_they_are_named(
    asked: str, name: str, arguments: str
) -> None:
    from typing import Literal

    def get_weather(city: str, days: int = 1) -> str:
        return f"sunny in {city}"

    def stock(number: int) -> int:
        return number

    def paint(colour: Literal["red", "blue"], now: bool) -> str:
        return colour

    agent = Agent("mine", model=DemoModel(delay=0), tools=[get_weather, stock, paint])
    told = await answer(agent, asked)
    (call,) = kept(told)[0].tool_calls()
    assert (call.name, call.arguments) == (name, arguments)
    assert not kept(told)[1].is_error


async def test_it_thinks_first_when_asked_to() -> None:
    told = await answer(demo(), "think, then roll 2 dice")
    kinds = [type(event) for event in told if isinstance(event, ThinkingDelta | ToolCallStarted | TextDelta)]
    assert [kind for kind, _ in itertools.groupby(kinds)] == [ThinkingDelta, ToolCallStarted, TextDelta]


async def test_it_fails_before_or_in_the_middle_of_an_answer_when_asked_to() -> None:
    told = await answer(demo(), "fail")
    assert kept(told) == []
    assert end_of(told).reason is EndReason.MODEL_ERROR
    told = await answer(demo(), "fail halfway")
    assert kept(told)[0].stop_reason is StopReason.ERROR
    assert kept(told)[0].join_text()


async def test_it_answers_at_the_length_asked_for_and_lets_others_run_meanwhile() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    told = await answer(demo(), "long 500")
    task.cancel()
    assert len([event for event in told if isinstance(event, TextDelta)]) == 500
    assert turns >= 5


async def test_it_remembers_what_was_said_and_echoes_the_rest() -> None:
    agent = demo()
    await agent.ask("my cat is called Mo")
    final = await agent.ask("what did I say before?")
    assert final is not None
    assert "my cat is called Mo" in final.join_text()
    assert await said("lovely day") == "You said: lovely day"


async def test_it_repeats_nothing_that_readers_may_not_see() -> None:
    hidden = user_message("secret", injected=Injected.META, origin="test")
    assert "secret" not in await said_to(hidden, user_message("what did I say?"))


async def said_to(*messages: object) -> str:
    told = await collect(demo().respond(context(*messages)))  # type: ignore[arg-type]
    return texts(kept(told))[-1]


async def test_it_says_which_media_it_was_given() -> None:
    picture = Image(source=UrlSource(value="http://example.test/a.png"))
    assert await said_to(user_message([Text(text="look"), picture])) == "You said: look [image]"


@pytest.mark.parametrize("asked", ["hello", "think hard", "tell me slowly", "weather", "calculate 2 ** 10"])
async def test_the_same_words_get_the_same_answer(asked: str) -> None:
    assert await said(asked) == await said(asked)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 3 * 4", "14"),
        ("-(2 ** 3) / 4", "-2.0"),
        ("7 // 2 % 2", "1"),
        ("9 ** 9 ** 9", "failed"),
        ("(-8) ** 0.5", "failed"),
        ("__import__('os')", "failed"),
        ("1 / 0", "failed"),
        ("'a' * 3", "failed"),
        ("(" * 300 + "1" + ")" * 300, "failed"),
        ("1" + "+1" * 300, "failed"),
    ],
)
async def test_arithmetic_is_worked_out_and_nothing_else(expression: str, result: str) -> None:
    import json

    from app.agent.models.base import CallPiece
    from app.agent.models.scripted import ScriptedModel

    call = CallPiece("0", json.dumps({"expression": expression}), name="calculate")
    told = await answer(assistant(ScriptedModel([[call], "end"])), "go")
    assert result in kept(told)[1].join_text()


async def test_an_unknown_time_zone_is_an_error_for_the_model() -> None:
    from app.agent.models.base import CallPiece
    from app.agent.models.scripted import ScriptedModel

    calls = [
        CallPiece(str(number), f'{{"zone": "{zone}"}}', name="current_time")
        for number, zone in enumerate(["Nowhere/Land", "../../etc/passwd", "utc"])
    ]
    told = await answer(assistant(ScriptedModel([calls, "end"])), "go")
    assert [message.is_error for message in kept(told)[1:4]] == [True, True, False]
