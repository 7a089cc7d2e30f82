"""Streams that other clients stumbled over, byte for byte, and what is right to make of each."""

import asyncio
import json
from dataclasses import replace

import pytest

from app.agent.context import StopSignal
from app.agent.events import AgentEvent, TextDelta
from app.agent.limits import Limits
from app.conversation.blocks import Thinking
from app.conversation.messages import Role, StopReason, Usage
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.asking import KEY, Asked, agent_on, ask, model_at
from tests.agent.recordings.streams import stream
from tests.agent.replay import Recording, provider
from tests.agent.running import QUICK, bounded, check, collect, context, end_of, kept, texts

CHAT = "openai:model-a"
CLAUDE = "anthropic:claude-a"
FINE = stream("comments-and-empty-data")
NOTHING: dict[str, str] = {}

pytestmark = pytest.mark.requirement("INT-01")


def failed(asked: Asked, words: str) -> None:
    """It ended with an error that names the cause and shows no secret."""
    assert asked.end.status is RunStatus.FAILED
    assert asked.end.error is not None
    assert asked.end.error.code == "MODEL_ERROR"
    assert words in asked.end.error.message
    for secret in (KEY, "127.0.0.1", "Traceback", "Error("):
        assert secret not in asked.end.error.message


@pytest.mark.parametrize(
    ("recording", "spec", "text"),
    [
        (stream("empty-deltas"), CHAT, "Hi"),
        (stream("halves-of-a-character"), CHAT, "ok \U0001f600 and lone \ufffd end"),
        (stream("chunks-without-choices"), CHAT, "Hi"),
        (stream("no-finish-reason"), CHAT, "All good."),
        (stream("wide-characters", split=1), CHAT, "Zürich 北京 👩‍👩‍👧 naïve"),
        (stream("comments-and-empty-data"), CHAT, "fine"),
        (stream("from-the-future"), CLAUDE, "prefix ok"),
    ],
)
async def test_the_text_arrives_whole_and_the_run_ends_well(
    recording: Recording, spec: str, text: str
) -> None:
    for given in (recording, replace(recording, split=7)):
        asked = await ask(given, spec=spec)
        assert texts(asked.messages) == [text]
        assert all(event.delta for event in asked.events if isinstance(event, TextDelta))
        assert asked.end.reason is EndReason.DONE
        assert len(asked.server.bodies) == 1


async def test_markup_is_text_like_any_other() -> None:
    asked = await ask(stream("hostile-markup"))
    told = asked.first.join_text()
    assert told.startswith("<img src=x onerror=")
    assert told.endswith("</textarea></title>")


async def test_tokens_in_a_chunk_without_choices_are_counted_once() -> None:
    asked = await ask(stream("chunks-without-choices"))
    assert asked.first.usage == Usage(input_tokens=3, output_tokens=1, total_tokens=4)


@pytest.mark.parametrize(
    ("name", "spec", "calls", "results"),
    [
        (
            "calls-without-index",
            CHAT,
            [("get_weather", {"city": "Basel"}), ("get_time", {"tz": "UTC"})],
            ["sunny in Basel", "noon in UTC"],
        ),
        (
            "calls-of-one-index",
            CHAT,
            [
                ("get_weather", {"city": "Basel"}),
                ("get_weather", {"city": "Bern"}),
                ("get_time", {"tz": "UTC"}),
            ],
            ["sunny in Basel", "sunny in Bern", "noon in UTC"],
        ),
        ("calls-and-stop", CHAT, [("get_weather", {"city": "Basel"})], ["sunny in Basel"]),
        (
            "calls-without-arguments",
            CLAUDE,
            [("get_time", NOTHING), ("get_weather", {"city": "Basel"})],
            ["noon in UTC", "sunny in Basel"],
        ),
    ],
)
async def test_each_call_is_told_apart_run_and_sent_back_with_its_result(
    name: str, spec: str, calls: list[tuple[str, object]], results: list[str]
) -> None:
    last = FINE if spec == CHAT else stream("signed-thinking-then")
    asked = await ask(stream(name), last, spec=spec)
    made = asked.first.tool_calls()
    assert [(call.name, json.loads(call.arguments or "{}")) for call in made] == calls
    assert len({call.id for call in made}) == len(calls)
    assert asked.results == results
    assert asked.end.reason is EndReason.DONE
    second = asked.server.bodies[1].decode()
    assert all(second.count(f'"{call.id}"') == 2 for call in made)


async def test_text_around_a_call_stands_in_order_and_the_result_right_behind() -> None:
    asked = await ask(stream("text-around-a-call"), stream("text-around-a-call-then"))
    assert [block.type for block in asked.first.content] == ["text", "tool_call", "text"]
    assert texts(asked.messages)[-1] == "It is sunny in Basel."
    sent = asked.server.requests[1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    (call,) = sent[2]["tool_calls"]
    assert sent[3]["tool_call_id"] == call["id"]


async def test_nul_goes_out_of_text_and_arguments_and_its_spelling_stays() -> None:
    asked = await ask(stream("nul"), FINE)
    text = asked.first.join_text()
    assert text.startswith("before\ufffdafter")
    for message in asked.messages:
        assert "\x00" not in message.join_text()
        for call in message.tool_calls():
            assert "\x00" not in json.dumps(json.loads(call.arguments), ensure_ascii=False)
    assert asked.results == ["sunny in Ba\ufffdsel"]


@pytest.mark.parametrize(
    ("recording", "spec", "partial", "words"),
    [
        (stream("error-in-the-middle"), CHAT, "The first half", "(HTTP 502)"),
        (stream("cut-in-a-frame", end="reset"), CHAT, "This sentence stops in the mid", "connection"),
        (stream("overloaded"), CLAUDE, "Half an ans", "overloaded"),
    ],
)
async def test_a_failure_behind_the_first_words_keeps_them_and_is_not_tried_again(
    recording: Recording, spec: str, partial: str, words: str
) -> None:
    asked = await ask(recording, spec=spec)
    assert texts(asked.messages) == [partial]
    assert asked.first.stop_reason is StopReason.ERROR
    failed(asked, words)
    assert len(asked.server.bodies) == 1


async def test_an_error_that_is_all_there_is_is_tried_again_and_then_said() -> None:
    asked = await ask(stream("error-alone"))
    assert asked.messages == []
    failed(asked, "limits the rate of requests")
    assert 1 < len(asked.server.bodies) <= 1 + QUICK.retries


@pytest.mark.parametrize("name", ["error-in-the-middle", "overloaded", "error-alone"])
async def test_the_next_message_works_after_a_failure(name: str) -> None:
    spec = CLAUDE if name == "overloaded" else CHAT
    good = stream("signed-thinking-then") if name == "overloaded" else FINE
    faults = [stream(name)] * (1 + QUICK.retries if name == "error-alone" else 1)
    async with provider(*faults, good) as server, model_at(server.address, spec) as model:
        agent = agent_on(model)
        await collect(agent.run("hi"))
        told = await collect(agent.run("again"))
    assert end_of(told).reason is EndReason.DONE


async def test_a_stream_that_hangs_is_stopped_and_its_connection_closed() -> None:
    stop = StopSignal()
    told: list[AgentEvent] = []
    hanging = stream("hanging", end="hang")
    async with provider(hanging) as server, model_at(server.address, CHAT) as model:
        async for event in bounded(agent_on(model).respond(context("hi", stop=stop))):
            told.append(event)
            if isinstance(event, TextDelta):
                asyncio.get_running_loop().call_soon(stop.request, EndReason.STOP_REQUESTED)
        await asyncio.wait_for(server.gone.wait(), 5)
    check(told)
    assert texts(kept(told)) == ["Thinking about it"]
    assert kept(told)[0].stop_reason is StopReason.ABORTED


@pytest.mark.requirement("AGT-17")
async def test_a_stream_that_hangs_runs_into_the_idle_time_limit() -> None:
    asked = await ask(stream("hanging", end="hang"), limits=Limits(model_idle_seconds=0.3))
    assert texts(asked.messages) == ["Thinking about it"]
    assert asked.end.reason is EndReason.MODEL_TIMEOUT
    assert asked.end.error is not None
    assert asked.end.error.code == "MODEL_TIMEOUT"


@pytest.mark.requirement("AGT-17")
async def test_calls_without_end_are_stopped_and_every_one_has_its_result() -> None:
    endless = stream("calls-for-ever")
    numbered = [replace(endless, body=endless.body.replace(b"{{N}}", b"%d" % n)) for n in range(4)]
    async with provider(*numbered[:3], FINE) as server, model_at(server.address, CHAT) as model:
        agent = agent_on(model, Limits(turns=3))
        told = await collect(agent.run("hi"))
        assert end_of(told).reason is EndReason.LOOP_LIMIT
        assert len(server.bodies) <= 4
        await collect(agent.run("again"))
        sent = server.requests[-1]["messages"]
    calls = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert calls == ["call_l0", "call_l1", "call_l2"]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == calls


async def test_reasoning_is_never_text_and_goes_back_with_the_call() -> None:
    asked = await ask(stream("reasoning-content"), stream("reasoning-content-then"))
    assert texts(asked.messages)[-1] == "Sunny."
    thoughts = [
        block.text for message in asked.messages for block in message.content if isinstance(block, Thinking)
    ]
    assert thoughts == ["I should call the weather tool.", "Now answer."]
    sent = [message for message in asked.server.requests[1]["messages"] if message["role"] == Role.ASSISTANT]
    assert sent[0]["reasoning_content"] == "I should call the weather tool."
    assert sent[0]["tool_calls"]


@pytest.mark.requirement("MSG-15")
@pytest.mark.parametrize("split", [None, 3])
async def test_signed_and_sealed_reasoning_goes_back_unchanged_and_in_order(split: int | None) -> None:
    asked = await ask(stream("signed-thinking", split=split), stream("signed-thinking-then"), spec=CLAUDE)
    _, said, answered = asked.server.requests[1]["messages"]
    signed, sealed, called = said["content"]
    assert (signed["type"], signed["signature"]) == ("thinking", "QUFBQUFBQUFBQUFBQUFBQUFB")
    assert (sealed["type"], sealed["data"]) == ("redacted_thinking", "UkVEQUNURUQ=")
    assert called["type"] == "tool_use"
    assert answered["content"][0]["type"] == "tool_result"
    assert "QUFB" not in asked.messages[-1].join_text()
