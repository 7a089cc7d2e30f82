"""Tools that the provider runs itself: what they gave goes back to it as it came, and to nobody else."""

import json
from typing import Any

import pytest

from app.agent.agent import Agent
from app.agent.models.providers import make_model
from app.conversation.blocks import Text, Thinking, ToolCall
from app.conversation.messages import Message, StopReason, Usage
from app.errors import StartupRefused
from tests.agent.asking import agent_on, keys_for, model_at
from tests.agent.recordings import chat, messages
from tests.agent.recordings import server_tools as recorded
from tests.agent.replay import Provider, Recording, provider
from tests.agent.running import collect, kept

CLAUDE = "anthropic:claude-opus-4-8"
GPT = "openai-responses:gpt-5"
BOTH = ("web_search", "code_execution")


def reloaded(message: Message) -> Message:
    return Message.model_validate(json.loads(message.to_json()))


async def said(server: Provider, spec: str) -> Message:
    """The first message of a run, as a restart would find it."""
    async with model_at(server.address, spec, server_tools=BOTH) as model:
        first, *_ = kept(await collect(agent_on(model).run("hi")))
    return reloaded(first)


async def next_request(server: Provider, spec: str, *history: Message) -> dict[str, Any]:
    async with model_at(server.address, spec, server_tools=BOTH) as model:
        await collect(Agent("bot", model=model, history=history).run("and now?"))
    return server.requests[-1]


def server_calls(message: Message) -> list[ToolCall]:
    return [block for block in message.content if isinstance(block, ToolCall) and block.server]


@pytest.mark.requirement("MSG-14", "MSG-15")
async def test_what_a_search_found_goes_back_to_its_provider_byte_for_byte() -> None:
    async with provider(recorded.SEARCHED, messages.SUNNY) as server:
        first = await said(server, CLAUDE)
        request = await next_request(server, CLAUDE, first)
    (call,) = server_calls(first)
    assert (call.id, call.name, call.server_type) == ("srvtoolu_1", "web_search", "web_search")
    assert json.loads(call.arguments) == {"query": "weather Basel"}
    assert call.output is not None
    assert call.output.raw == recorded.FOUND
    assert call.output.is_error is False
    assert "RW5jcnlwdGVkL+4=" not in json.dumps(call.output.content)
    assert "https://example.test/basel" in json.dumps(call.output.content)
    sent = request["messages"][0]
    assert sent["role"] == "assistant"
    assert sent["content"] == [
        {"type": "text", "text": "I look it up."},
        {**recorded.SEARCH, "input": {"query": "weather Basel"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": recorded.FOUND,
            "caller": recorded.SEARCH["caller"],
        },
        {"type": "text", "text": "It is sunny", "citations": [recorded.CITED]},
        {"type": "text", "text": " in Basel."},
    ]


@pytest.mark.requirement("MSG-14")
@pytest.mark.parametrize(
    ("recording", "result", "given", "failed"),
    [
        (recorded.RAN_CODE, "bash_code_execution_tool_result", recorded.RAN, False),
        (recorded.SEARCH_REFUSED, "web_search_tool_result", recorded.NO_MORE, True),
    ],
)
async def test_each_kind_of_result_goes_back_under_its_own_name(
    recording: Recording, result: str, given: object, failed: bool
) -> None:
    async with provider(recording, messages.SUNNY) as server:
        first = await said(server, CLAUDE)
        request = await next_request(server, CLAUDE, first)
    (call,) = server_calls(first)
    assert call.output is not None
    assert (call.output.raw, call.output.is_error) == (given, failed)
    asked, answered, _ = request["messages"][0]["content"]
    assert (asked["type"], asked["id"]) == ("server_tool_use", answered["tool_use_id"])
    assert answered == {"type": result, "tool_use_id": call.id, "content": given} | (
        {"caller": asked["caller"]} if "caller" in asked else {}
    )


@pytest.mark.requirement("MSG-14")
async def test_responses_send_reasoning_search_and_call_back_as_they_came() -> None:
    async with provider(recorded.RESPONSE_WITH_ALL, recorded.RESPONSE_FINE) as server:
        first = await said(server, GPT)
        again = server.requests[1]
    thought, searched, text, called = first.content
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.signature) == ("I should search.", "gAAAAABsealed==")
    assert isinstance(searched, ToolCall)
    assert searched.server
    assert isinstance(text, Text)
    assert text.text == "Let me see."
    assert isinstance(called, ToolCall)
    assert (called.id, called.server) == ("call_r", False)
    assert first.stop_reason is StopReason.TOOL_USE
    assert first.usage == Usage(input_tokens=20, output_tokens=8, total_tokens=28, reasoning_tokens=5)
    sent = {part.get("type", part.get("role")): part for part in again["input"]}
    assert list(sent)[1:] == [
        "reasoning",
        "web_search_call",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert sent["reasoning"] == recorded.REASONING
    assert sent["web_search_call"] == recorded.WEB
    assert sent["message"] == recorded.SAID
    assert sent["function_call"]["arguments"] == recorded.CALLED["arguments"]
    assert sent["function_call_output"]["output"] == "sunny in Basel"


@pytest.mark.requirement("MSG-14")
async def test_a_model_that_does_not_reason_gets_its_search_back_too() -> None:
    spec = "openai-responses:gpt-4.1"
    recording = recorded.responded(
        recorded.searched(2, 0),
        recorded.worded(10, 1, "Sunny.", "msg_1"),
        output=[],
    )
    async with provider(recording, recorded.RESPONSE_FINE) as server:
        first = await said(server, spec)
        request = await next_request(server, spec, first)
    assert recorded.WEB in request["input"]


@pytest.mark.requirement("MSG-14")
@pytest.mark.parametrize(
    ("made", "recording", "other", "answer"),
    [
        (CLAUDE, recorded.SEARCHED, "openai:gpt-5", chat.FINE),
        (CLAUDE, recorded.SEARCHED, GPT, recorded.RESPONSE_FINE),
        (GPT, recorded.responded(recorded.searched(2, 0), output=[]), CLAUDE, messages.SUNNY),
        (GPT, recorded.responded(recorded.searched(2, 0), output=[]), "openai:gpt-5", chat.FINE),
    ],
)
async def test_another_provider_is_sent_nothing_of_it_and_no_empty_message(
    made: str, recording: Recording, other: str, answer: Recording
) -> None:
    async with provider(recording, answer) as server:
        first = await said(server, made)
        tools = () if other == "openai:gpt-5" else BOTH
        async with model_at(server.address, other, server_tools=tools) as model:
            await collect(Agent("bot", model=model, history=[first]).run("and now?"))
        body = server.bodies[-1].decode()
        request = server.requests[-1]
    assert server_calls(first)
    for trace in ("srvtoolu_1", "ws_1", "encrypted_content", "weather Basel"):
        assert trace not in body.replace('"reasoning.encrypted_content"', "")
    sent = request.get("messages") or request["input"]
    assert all(message["content"] for message in sent)
    assert ("It is sunny" in body) is (made == CLAUDE)


@pytest.mark.requirement("MSG-14")
async def test_an_answer_that_the_provider_breaks_off_to_go_on_with_is_one_message() -> None:
    async with provider(recorded.PAUSED, recorded.RESUMED, messages.SUNNY) as server:
        first = await said(server, CLAUDE)
        resumed = server.requests[1]["messages"]
        request = await next_request(server, CLAUDE, first)
    assert [message["role"] for message in resumed] == ["user", "assistant"]
    assert resumed[-1]["content"][-1] == {**recorded.SEARCH, "input": {"query": "weather Basel"}}
    assert [block.type for block in first.content] == ["text", "tool_call", "text"]
    assert first.stop_reason is StopReason.STOP
    assert first.usage is not None
    assert first.usage.input_tokens == 24
    sent = request["messages"][0]["content"]
    assert [part["type"] for part in sent] == ["text", "server_tool_use", "web_search_tool_result", "text"]


async def test_a_result_of_a_call_that_was_never_told_is_left_out() -> None:
    async with provider(recorded.NOBODY_ASKED) as server:
        first = await said(server, CLAUDE)
    assert [block.type for block in first.content] == ["text"]


@pytest.mark.parametrize(
    ("spec", "tool", "words"),
    [
        ("demo", "web_search", "no server tools"),
        (CLAUDE, "telepathy", "no server tool telepathy"),
        ("openai:gpt-5", "code_execution", "has no server tool code_execution"),
    ],
)
def test_a_server_tool_that_is_not_there_is_refused_by_name(spec: str, tool: str, words: str) -> None:
    with pytest.raises(StartupRefused, match=words):
        make_model(spec, keys_for("http://127.0.0.1:9"), server_tools=(tool,))
