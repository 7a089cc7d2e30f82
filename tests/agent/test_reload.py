"""What is sent to a provider after a reload equals what was sent before it."""

import json

import pytest

from app.agent.agent import Agent
from app.agent.models.providers import ProviderModel
from app.conversation.blocks import DataSource, Image, Reminder, Text, ToolCall
from app.conversation.messages import (
    Injected,
    Message,
    StopReason,
    assistant_message,
    tool_result_message,
    user_message,
)
from tests.agent.asking import get_time, get_weather, model_at
from tests.agent.recordings import chat, messages, server_tools
from tests.agent.replay import Provider, Recording, provider
from tests.agent.running import collect

PICTURE = Image(source=DataSource(value="iVBORw0KGgo=", mime_type="image/png"))


def reloaded(history: list[Message]) -> list[Message]:
    """Written as JSON and read again, as a restart does it."""
    return [Message.model_validate(json.loads(message.to_json())) for message in history]


def agent(model: ProviderModel, history: list[Message]) -> Agent:
    return Agent("bot", model=model, instructions="Be good.", tools=[get_weather, get_time], history=history)


def tools_of(spec: str) -> tuple[str, ...]:
    """The tools that the provider itself runs, where these recordings have some."""
    return ("web_search", "code_execution") if "opus" in spec or "gpt" in spec else ()


async def same_request(server: Provider, spec: str, history: list[Message]) -> bytes:
    """Asks on, once with this history and once with the reloaded one."""
    asked = user_message("and now?")
    async with model_at(server.address, spec, server_tools=tools_of(spec)) as model:
        await collect(agent(model, history).run(asked))
        await collect(agent(model, reloaded(history)).run(asked))
    before, after = server.bodies[-2:]
    assert before == after
    return before


@pytest.mark.requirement("MSG-15")
@pytest.mark.parametrize(
    ("spec", "recordings"),
    [
        ("openai:model-a", [chat.REASONING, chat.REASONING_END]),
        ("openai:model-a", [chat.TEXT_CALL_TEXT, chat.FINE]),
        ("openai:model-a", [chat.SEALED_CALL, chat.FINE]),
        ("openai:model-a", [chat.NUL, chat.ERROR_IN_THE_MIDDLE, chat.FINE]),
        ("openai:model-a", [chat.NO_IDS, chat.CUT, chat.FINE]),
        ("anthropic:claude-a", [messages.SIGNED, messages.SUNNY]),
        ("anthropic:claude-a", [messages.SIGNED_IN_PIECES, messages.SUNNY]),
        ("anthropic:claude-opus-4-8", [server_tools.SEARCHED, messages.SIGNED, messages.SUNNY]),
        ("anthropic:claude-opus-4-8", [server_tools.RAN_CODE, messages.SUNNY]),
        ("openai-responses:gpt-5", [server_tools.RESPONSE_WITH_ALL, server_tools.RESPONSE_FINE]),
        ("openai-responses:gpt-4.1", [server_tools.RESPONSE_WITH_ALL, server_tools.RESPONSE_FINE]),
        ("anthropic:claude-a", [messages.NO_ARGUMENTS, messages.OVERLOADED, messages.SUNNY]),
    ],
)
async def test_a_conversation_that_was_had_is_sent_alike(spec: str, recordings: list[Recording]) -> None:
    async with (
        provider(*recordings) as server,
        model_at(server.address, spec, server_tools=tools_of(spec)) as model,
    ):
        first = agent(model, [])
        await collect(first.run("hi"))
        await collect(first.run("weather?"))
        had = len(server.bodies)
        body = await same_request(server, spec, first.messages())
        assert len(server.bodies) == had + 2
    assert b"weather?" in body


@pytest.mark.requirement("MSG-15")
@pytest.mark.parametrize("spec", ["openai:model-a", "openai-responses:model-a", "anthropic:claude-a"])
async def test_a_history_of_every_kind_is_sent_alike(spec: str) -> None:
    history = [
        user_message([Text(text="look"), PICTURE, Reminder(text="it is late", origin="clock")]),
        assistant_message(
            [
                Text(text="I see"),
                ToolCall(id="a", name="get_weather", arguments='{"city":'),
                ToolCall(id="b", name="get_time"),
            ],
            stop_reason=StopReason.ABORTED,
        ),
        tool_result_message("b", "get_time", [Text(text="noon"), PICTURE]),
        user_message("a note", injected=Injected.META, origin="test"),
        assistant_message("fine"),
    ]
    async with provider(chat.FINE) as server:
        body = await same_request(server, spec, history)
    for words in (b"look", b"it is late", b"I see", b"noon", b"a note", b"not executed"):
        assert words in body
