"""Servers that speak OpenAI's Responses."""

from dataclasses import replace

import pytest

from app.conversation.blocks import Text
from app.conversation.messages import StopReason, Usage
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.asking import ask
from tests.agent.recordings import server_tools as recorded
from tests.agent.replay import Recording
from tests.agent.running import texts

SPEC = "openai-responses:gpt-5"

pytestmark = pytest.mark.requirement("INT-01")


async def test_the_request_holds_system_text_history_and_tools_and_the_answer_its_metadata() -> None:
    asked = await ask(recorded.RESPONSE_FINE, spec=SPEC)
    (request,) = asked.server.requests
    assert asked.server.paths == ["/v1/responses"]
    assert request["instructions"] == "Be good."
    assert request["input"] == [{"role": "user", "content": "hi"}]
    assert request["tools"][0]["name"] == "get_weather"
    assert texts(asked.messages) == ["Sunny."]
    assert (asked.first.provider, asked.first.response_id) == ("openai", "resp_1")
    assert asked.first.usage == Usage(input_tokens=20, output_tokens=8, total_tokens=28, reasoning_tokens=5)
    assert asked.first.stop_reason is StopReason.STOP


@pytest.mark.parametrize(
    "recording",
    [
        replace(recorded.RESPONSE_FINE, split=5),
        Recording(
            b'event: keepalive\ndata: {"type":"keepalive","sequence_number":1}\n\n'
            b": comment\n\ndata:\n\ndata: no json\n\n"
            + recorded.RESPONSE_FINE.body
            + b"data: [DONE]\n\n"
            + recorded.item("response.vendor.future", 100, x=1)
        ),
    ],
)
async def test_what_is_no_event_of_the_protocol_is_skipped(recording: Recording) -> None:
    asked = await ask(recording, spec=SPEC)
    assert texts(asked.messages) == ["Sunny."]
    assert asked.end.reason is EndReason.DONE


@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (recorded.RESPONSE_CUT, "in the middle"),
        (replace(recorded.RESPONSE_CUT, end="reset"), "connection"),
        (recorded.RESPONSE_FAILED, "an error"),
    ],
)
async def test_a_failure_in_the_middle_keeps_the_text_and_is_not_tried_again(
    recording: Recording, words: str
) -> None:
    asked = await ask(recording, spec=SPEC)
    assert texts(asked.messages) == ["Half"]
    assert asked.first.stop_reason is StopReason.ERROR
    assert asked.end.status is RunStatus.FAILED
    assert asked.end.error is not None
    assert words in asked.end.error.message
    assert "boom" not in asked.end.error.message
    assert len(asked.server.bodies) == 1


async def test_an_answer_cut_by_its_length_says_so() -> None:
    cut = {**recorded.response("incomplete"), "incomplete_details": {"reason": "max_output_tokens"}}
    asked = await ask(
        Recording(recorded.RESPONSE_CUT.body + recorded.item("response.incomplete", 9, response=cut)),
        spec=SPEC,
    )
    assert texts(asked.messages) == ["Half"]
    assert asked.first.stop_reason is StopReason.LENGTH
    assert asked.end.reason is EndReason.LENGTH


async def test_two_messages_of_one_answer_go_back_as_two_under_their_own_ids() -> None:
    recording = recorded.responded(
        recorded.worded(2, 0, "I call it.", "msg_a"),
        recorded.worded(10, 1, "Now.", "msg_b"),
        recorded.called(20, 2),
        output=[],
    )
    asked = await ask(recording, recorded.RESPONSE_FINE, spec=SPEC)
    assert [block.text for block in asked.first.content if isinstance(block, Text)] == ["I call it.", "Now."]
    sent = [part for part in asked.server.requests[1]["input"] if part.get("type") == "message"]
    assert [(part["id"], part["content"][0]["text"]) for part in sent] == [
        ("msg_a", "I call it."),
        ("msg_b", "Now."),
    ]
