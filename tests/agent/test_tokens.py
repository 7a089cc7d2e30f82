"""What a message weighs in a prompt: estimated, and reported."""

import base64
from typing import Any

import pytest
from hypothesis import given

from app.agent.tokens import estimate, estimate_all, reported
from app.conversation.blocks import (
    Audio,
    Block,
    DataSource,
    Document,
    Image,
    Reminder,
    ServerToolOutput,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    UrlSource,
    Video,
)
from app.conversation.messages import (
    Message,
    Usage,
    assistant_message,
    tool_result_message,
    user_message,
)
from tests.conversation.strategies import messages

PICTURE = base64.b64encode(b"\xff" * 300_000).decode()


def test_a_message_is_four_tokens_and_one_for_each_four_bytes_begun() -> None:
    assert [estimate(user_message("x" * length)) for length in (0, 1, 4, 5)] == [4, 5, 5, 6]
    assert estimate(user_message("über")) == 4 + 2
    assert estimate_all([]) == 0
    assert estimate_all([user_message("abcd"), assistant_message("abcd")]) == 10


def test_a_tool_result_of_40_kilobytes_is_about_ten_thousand_tokens() -> None:
    assert estimate(tool_result_message("c", "look", "x" * 40_000)) == 10_004


@pytest.mark.parametrize(
    "source", [DataSource(value=PICTURE, mime_type="image/png"), UrlSource(value="data:," + PICTURE)]
)
def test_an_image_weighs_the_same_however_many_bytes_it_has(source: Any) -> None:
    assert estimate(user_message([Image(source=source)])) == 1504


@pytest.mark.parametrize("kind", [Audio, Video, Document])
def test_a_file_weighs_the_same_however_many_bytes_it_has(kind: Any) -> None:
    source = DataSource(value=PICTURE, mime_type="application/pdf")
    assert estimate(user_message([kind(source=source), Text(text="abcd")])) == 1005


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (ToolCall(id="a-very-long-id-of-a-call", name="look", arguments='{"at": "sky"}'), 5),
        (Thinking(id="t", text="x" * 40, signature="s" * 4000), 10),
        (Thinking(id="t", encrypted="e" * 4000), 0),
        (Reminder(text="x" * 40, origin="clock"), 10),
        (
            ToolCall(
                id="c",
                name="find",
                server=True,
                output=ServerToolOutput(content="not sent", raw=["x" * 36]),
            ),
            11,
        ),
        (ToolCall(id="c", name="find", server=True, output=ServerToolOutput(content="x" * 36)), 10),
        (Unknown.model_validate({"type": "odd", "words": "x" * 100}), 32),
    ],
)
def test_a_block_weighs_what_a_model_reads_of_it(block: Block, tokens: int) -> None:
    assert estimate(assistant_message([block])) == 4 + tokens


@given(messages)
def test_a_message_weighs_the_same_after_a_reload(message: Message) -> None:
    weight = estimate(message)
    assert weight >= 4
    assert estimate(Message.model_validate_json(message.to_json())) == weight


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, 0),
        (Usage(), 0),
        (Usage(total_tokens=120, input_tokens=1, output_tokens=2), 120),
        (Usage(input_tokens=100, output_tokens=7, reasoning_tokens=5), 107),
        (Usage(output_tokens=7), 7),
    ],
)
def test_where_a_provider_gives_no_sum_prompt_and_answer_are_added(usage: Usage | None, tokens: int) -> None:
    assert reported(usage) == tokens
