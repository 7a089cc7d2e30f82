"""Servers that speak Anthropic's messages."""

from dataclasses import replace

import pytest

from app.conversation.blocks import Thinking
from app.conversation.messages import StopReason, Usage
from app.conversation.outcomes import EndReason
from tests.agent.asking import KEY, ask
from tests.agent.recordings import messages
from tests.agent.replay import Recording
from tests.agent.running import texts

SPEC = "anthropic:claude-a"

pytestmark = pytest.mark.requirement("INT-01")


async def test_the_request_is_one_message_with_the_key_in_a_header() -> None:
    asked = await ask(messages.SUNNY, spec=SPEC)
    assert asked.server.paths[0].startswith("/v1/messages")
    assert any(KEY in value for value in asked.server.headers[0].values())
    assert asked.server.requests[0]["system"] == [{"type": "text", "text": "Be good."}]
    assert texts(asked.messages) == ["Sunny."]
    assert asked.first.provider == "anthropic"
    assert asked.first.usage == Usage(input_tokens=12, output_tokens=9, total_tokens=21)


@pytest.mark.parametrize(
    ("recording", "text", "words"),
    [
        (messages.OVERLOADED, "Half an ans", "overloaded"),
        (messages.ENDED_EARLY, "The first half", "in the middle"),
        (replace(messages.ENDED_EARLY, end="reset"), "The first half", "connection"),
    ],
)
async def test_a_failure_after_text_keeps_the_text_and_is_not_tried_again(
    recording: Recording, text: str, words: str
) -> None:
    asked = await ask(recording, spec=SPEC)
    assert texts(asked.messages) == [text]
    assert asked.first.stop_reason is StopReason.ERROR
    assert asked.end.reason is EndReason.MODEL_ERROR
    assert asked.end.error is not None
    assert words in asked.end.error.message
    assert len(asked.server.bodies) == 1


async def test_tools_without_arguments_with_pieces_and_with_all_at_once_are_run() -> None:
    asked = await ask(messages.NO_ARGUMENTS, messages.SUNNY, spec=SPEC)
    assert asked.results == ["noon in UTC", "sunny in Basel", "sunny in Bern"]


async def test_what_is_unknown_is_skipped() -> None:
    asked = await ask(messages.FROM_THE_FUTURE, spec=SPEC)
    assert texts(asked.messages) == ["prefix ok"]
    assert asked.end.reason is EndReason.DONE


async def test_signed_and_sealed_reasoning_goes_back_as_it_came_and_in_order() -> None:
    asked = await ask(messages.SIGNED, messages.SUNNY, spec=SPEC)
    signed, sealed = [block for block in asked.first.content if isinstance(block, Thinking)]
    assert (signed.text, signed.signature) == ("I need the weather.", "QUFBQUFBQUFBQUFBQUFBQUFB")
    assert (sealed.text, sealed.encrypted) == ("", "UkVEQUNURUQ=")
    _, sent, answered = asked.server.requests[1]["messages"]
    assert sent["content"] == [
        {"type": "thinking", "thinking": "I need the weather.", "signature": "QUFBQUFBQUFBQUFBQUFBQUFB"},
        {"type": "redacted_thinking", "data": "UkVEQUNURUQ="},
        {"type": "tool_use", "id": "toolu_g", "name": "get_weather", "input": {"city": "Basel"}},
    ]
    assert answered["content"][0]["type"] == "tool_result"


@pytest.mark.requirement("MSG-15")
async def test_a_signature_that_comes_in_pieces_goes_back_whole() -> None:
    asked = await ask(messages.SIGNED_IN_PIECES, messages.SUNNY, spec=SPEC)
    assert [block.signature for block in asked.first.content if isinstance(block, Thinking)] == [
        messages.SIGNATURE,
        messages.SIGNATURE,
    ]
    sent = asked.server.requests[1]["messages"][1]["content"]
    assert sent[:2] == [
        {"type": "thinking", "thinking": "First.", "signature": messages.SIGNATURE},
        {"type": "thinking", "thinking": "Second.", "signature": messages.SIGNATURE},
    ]
