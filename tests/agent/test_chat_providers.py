"""Servers that speak OpenAI's chat completions, with every accent that was met in the wild."""

import asyncio
import logging
from dataclasses import replace

import pytest

from app.agent.context import StopSignal
from app.agent.events import AgentEvent, TextDelta
from app.agent.limits import Limits
from app.conversation.blocks import Image, Text, Thinking, UrlSource
from app.conversation.messages import Role, StopReason, Usage, user_message
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.asking import KEY, Asked, agent_on, ask, model_at
from tests.agent.recordings import chat
from tests.agent.replay import Recording, provider
from tests.agent.running import bounded, check, collect, context, end_of, kept, texts

pytestmark = pytest.mark.requirement("INT-01")


def public_words(asked: Asked) -> str:
    assert asked.end.error is not None
    return asked.end.error.message


async def test_the_request_is_one_chat_completion_with_system_text_history_and_tools() -> None:
    asked = await ask(chat.FINE)
    (request,) = asked.server.requests
    assert asked.server.paths == ["/v1/chat/completions"]
    assert asked.server.headers[0]["authorization"] == f"bearer {KEY}"
    assert request["model"] == "model-a"
    assert request["stream"] is True
    assert request["messages"] == [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": "hi"},
    ]
    weather = request["tools"][0]["function"]
    assert (weather["name"], weather["description"]) == ("get_weather", "Tells the weather.")
    assert weather["parameters"]["required"] == ["city"]
    assert "strict" not in weather
    assert asked.first.provider == "openai"
    assert asked.first.model == "model-a"
    assert asked.first.response_id == "chatcmpl-1"


@pytest.mark.parametrize(
    ("recording", "text"),
    [
        (chat.FINE, "fine"),
        (chat.EMPTY_DELTAS, "Hi"),
        (chat.HALVES, "ok \U0001f600 and lone \ufffd end"),
        (chat.EMPTY_CHOICES, "Hi"),
        (chat.ODD_CHUNKS, "fine"),
        (chat.NO_FINISH, "All good."),
        (chat.NO_DONE, "All good."),
        (chat.BYTE_BY_BYTE, chat.WORDS),
        (chat.ODD_SEPARATORS, chat.SEPARATORS),
        (chat.COMMENTS, "fine"),
        (chat.CR_LINES, "fine"),
        (chat.OLD_MAC_LINES, "fine"),
        (replace(chat.FINE, split=1), "fine"),
        (replace(chat.COMMENTS, split=1), "fine"),
    ],
)
async def test_the_text_of_a_good_answer_arrives_whole(recording: Recording, text: str) -> None:
    asked = await ask(recording)
    assert texts(asked.messages) == [text]
    assert asked.first.stop_reason is StopReason.STOP
    assert asked.end.reason is EndReason.DONE
    assert len(asked.server.bodies) == 1


async def test_tokens_are_counted_once_however_often_they_are_told() -> None:
    asked = await ask(chat.EMPTY_CHOICES)
    assert asked.first.usage == Usage(input_tokens=3, output_tokens=1, total_tokens=4)


@pytest.mark.parametrize(
    ("recording", "results"),
    [
        (chat.NO_INDEX, ["sunny in Basel", "noon in UTC"]),
        (chat.SAME_INDEX, ["sunny in Basel", "sunny in Bern", "noon in UTC"]),
        (chat.NO_IDS, ["sunny in Basel", "sunny in Bern"]),
        (chat.TWO_OPEN, ["sunny in Basel", "noon in UTC"]),
        (chat.ARGUMENTS_AS_OBJECT, ["sunny in Basel"]),
        (chat.STOP_WITH_CALLS, ["sunny in Basel"]),
        (chat.NUL, ["sunny in Ba\ufffdsel"]),
    ],
)
async def test_calls_are_told_apart_and_run_whatever_their_indices_and_the_finish_reason(
    recording: Recording, results: list[str]
) -> None:
    asked = await ask(recording, chat.FINE)
    assert asked.results == results
    assert texts(asked.messages)[-1] == "fine"
    calls = asked.first.tool_calls()
    assert len({call.id for call in calls}) == len(calls) == len(results)
    assert asked.first.stop_reason is StopReason.TOOL_USE


async def test_nul_becomes_a_replacement_character_and_its_spelling_stays() -> None:
    asked = await ask(chat.NUL, chat.FINE)
    assert asked.first.join_text() == "before\ufffdafter and \\u0000"


async def test_text_around_a_call_keeps_its_order_and_the_result_follows_the_call() -> None:
    asked = await ask(chat.TEXT_CALL_TEXT, chat.FINE)
    assert [block.type for block in asked.first.content] == ["text", "tool_call", "text"]
    second = asked.server.requests[1]["messages"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "tool"]
    (call,) = second[2]["tool_calls"]
    assert second[3]["tool_call_id"] == call["id"] == "call_a"
    assert second[3]["content"] == "sunny in Basel"


@pytest.mark.parametrize(
    ("recording", "text", "words"),
    [
        (chat.ERROR_IN_THE_MIDDLE, "The first half", "(HTTP 502)"),
        (chat.FINISH_ERROR, "The first half", "reported an error"),
        (chat.NAMED_ERROR, "The first half", "reported an error"),
        (chat.CUT, "This sentence stops in the mid", "connection"),
        (chat.ENDED_EARLY, "The first half", "in the middle"),
        (chat.FILTERED, "well", "content filter"),
    ],
)
async def test_a_failure_in_the_middle_keeps_the_text_and_says_what_failed(
    recording: Recording, text: str, words: str
) -> None:
    asked = await ask(recording)
    assert texts(asked.messages) == [text]
    assert asked.first.stop_reason is StopReason.ERROR
    assert asked.end.status is RunStatus.FAILED
    assert asked.end.error is not None
    assert asked.end.error.code == "MODEL_ERROR"
    assert words in public_words(asked)
    assert len(asked.server.bodies) == 1


@pytest.mark.parametrize(
    ("recording", "tries", "words"),
    [
        (chat.ERROR_ONLY, 3, "limits the rate of requests"),
        (chat.ERROR_TEXT_ONLY, 1, "reported an error"),
        (chat.refused(500), 3, "(HTTP 500)"),
        (chat.refused(503, "overloaded"), 3, "overloaded"),
        (chat.refused(429, "slow"), 3, "limits the rate"),
        (chat.refused(429, "pay", "insufficient_quota"), 1, "quota"),
        (chat.refused(401, f"Incorrect API key provided: {KEY}"), 1, "credentials"),
        (chat.refused(404), 1, "does not know this model"),
        (chat.refused(400, "x", "context_length_exceeded"), 1, "too long"),
        (chat.refused(422), 1, "refused the request"),
        (chat.NOT_A_STREAM, 3, "cannot be read"),
        (Recording(b""), 3, "in the middle"),
        (Recording(b"", end="reset"), 3, "connection"),
    ],
)
async def test_a_failure_before_the_first_token_is_tried_again_only_if_that_may_help(
    recording: Recording, tries: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "app"):
        asked = await ask(recording)
    assert len(asked.server.bodies) == tries
    assert asked.messages == []
    assert asked.end.reason is EndReason.MODEL_ERROR
    assert words in public_words(asked)
    for secret in (KEY, "127.0.0.1", "Error("):
        assert secret not in public_words(asked)
        assert secret not in caplog.text


async def test_a_failure_that_passes_is_not_noticed() -> None:
    asked = await ask(chat.refused(503), chat.ERROR_ONLY, chat.FINE)
    assert texts(asked.messages) == ["fine"]
    assert asked.end.reason is EndReason.DONE


async def test_a_server_that_is_not_there_is_an_error_that_says_so() -> None:
    async with model_at("http://127.0.0.1:9", "openai:model-a") as model:
        asked = [event async for event in bounded(agent_on(model).run("hi"))]
    error = end_of(asked).error
    assert error is not None
    assert "cannot be reached" in error.message
    assert "127.0.0.1" not in error.message


async def test_a_stop_closes_the_connection_to_the_provider() -> None:
    stop = StopSignal()
    told: list[AgentEvent] = []
    async with provider(chat.HANGS) as server, model_at(server.address, "openai:model-a") as model:
        async for event in bounded(agent_on(model).respond(context("hi", stop=stop))):
            told.append(event)
            if isinstance(event, TextDelta):
                asyncio.get_running_loop().call_soon(stop.request, EndReason.STOP_REQUESTED)
        check(told)
        await asyncio.wait_for(server.gone.wait(), 5)
    assert texts(kept(told)) == ["Thinking about it"]
    assert kept(told)[0].stop_reason is StopReason.ABORTED


@pytest.mark.parametrize(("recording", "said"), [(chat.HANGS, 1), (chat.HANGS_AT_ONCE, 0)])
async def test_a_provider_that_hangs_times_out(recording: Recording, said: int) -> None:
    async with provider(recording) as server, model_at(server.address, "openai:model-a") as model:
        agent = agent_on(model, Limits(model_idle_seconds=0.3))
        told = [event async for event in bounded(agent.run("hi"))]
        await asyncio.wait_for(server.gone.wait(), 5)
    check(told)
    assert len(kept(told)) == said
    assert end_of(told).reason is EndReason.MODEL_TIMEOUT


async def test_a_model_that_calls_for_ever_is_stopped_and_the_next_message_works() -> None:
    async with provider(chat.FOR_EVER) as server, model_at(server.address, "openai:model-a") as model:
        agent = agent_on(model, Limits(turns=3))
        told = [event async for event in bounded(agent.run("hi"))]
        assert end_of(told).reason is EndReason.LOOP_LIMIT
        assert len(server.bodies) == 3
        await collect(agent.run("again"))
        sent = server.requests[3]["messages"]
    calls = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    answers = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
    assert calls == answers
    assert len(set(calls)) == 3


async def test_an_answer_cut_by_its_length_says_so() -> None:
    asked = await ask(chat.LENGTH)
    assert asked.first.stop_reason is StopReason.LENGTH
    assert asked.end.reason is EndReason.LENGTH


async def test_reasoning_is_thinking_and_goes_back_with_the_tool_turn() -> None:
    asked = await ask(chat.REASONING, chat.REASONING_END)
    first, _, last = asked.messages
    (thought,) = [block for block in first.content if isinstance(block, Thinking)]
    assert thought.text == "I should call the weather tool."
    assert first.join_text() == ""
    assert last.join_text() == "Sunny."
    sent = asked.server.requests[1]["messages"][2]
    assert sent["reasoning_content"] == "I should call the weather tool."
    assert sent["tool_calls"][0]["id"] == "call_q"


async def test_what_a_provider_sealed_onto_a_call_goes_back_with_it() -> None:
    asked = await ask(chat.SEALED_CALL, chat.FINE)
    assert asked.results == ["sunny in Basel"]
    (call,) = asked.server.requests[1]["messages"][2]["tool_calls"]
    assert call["extra_content"] == {"vendor": {"thought_signature": "c2VhbA=="}}


async def test_pictures_reach_the_model_as_parts() -> None:
    picture = Image(source=UrlSource(value="https://example.test/cat.png", mime_type="image/png"))
    async with provider(chat.FINE) as server, model_at(server.address, "openai:model-a") as model:
        assert "image" in model.inputs
        await agent_on(model).ask(user_message([Text(text="what is this?"), picture]))
        (message,) = [m for m in server.requests[0]["messages"] if m["role"] == Role.USER]
    assert message["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.test/cat.png"}},
    ]
