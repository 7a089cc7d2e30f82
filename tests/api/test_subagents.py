"""Agents that ask other agents, on a server."""

import asyncio
from typing import Any

import pytest

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tools import tool
from tests.services.chat import Chat, OpenChat, text_of, user
from tests.services.sse import SseFrame
from tests.services.waiting import eventually


def asking(id: str = "a") -> list[CallPiece]:
    return [CallPiece(id, '{"request": "pay the bill"}', name="bank", call_id=id)]


def family(above: list[Reply], below: list[Reply], log: list[str], **how: Any) -> tuple[Agent, ScriptedModel]:
    """An agent with another one as its tool, whose own tool needs approval."""

    @tool(approval=True)
    def pay() -> str:
        log.append("paid")
        return "paid"

    model = ScriptedModel(below)
    bank = Agent("bank", model=model, tools=[pay], description="Pays bills.", attribution=True)
    desk = Agent("assistant", model=ScriptedModel(above), tools=[bank.as_tool(**how)])
    return desk, model


async def children(chat: Chat) -> list[dict[str, Any]]:
    return [thread for thread in await chat.threads(include_hidden="true") if thread["hidden"]]


def kinds(events: list[SseFrame]) -> list[str]:
    return [event.type for event in events if event.type.startswith("SUBAGENT")]


@pytest.mark.requirement("AGT-16", "HIS-08", "AGUI-08", "AGUI-14")
async def test_another_agent_answers_in_a_hidden_thread_below(open_chat: OpenChat) -> None:
    desk, bank = family([asking(), "all paid"], ["the bill is paid"], [])
    chat = await open_chat(agents=[desk])
    events = await chat.run("t", user("pay", "u1"), run="r1")
    assert text_of(events) == "all paid"
    started = next(event.data for event in events if event.type == "SUBAGENT_STARTED")
    assert kinds(events) == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
    assert (started["name"], started["parentToolCallId"]) == ("bank", "a")
    assert [thread["threadId"] for thread in await chat.threads()] == ["t"]
    (child,) = await children(chat)
    assert (child["parentThreadId"], child["groupId"], child["agent"]) == ("t", "t", "bank")
    (run,) = await chat.runs(child["threadId"])
    assert (run["parentRunId"], run["runId"], run["status"]) == ("r1", started["subagentRunId"], "completed")
    assert [message.join_text() for message in bank.prompts[0].messages] == ["pay the bill"]
    assert await chat.texts(child["threadId"]) == [
        ("user", "pay the bill"),
        ("assistant", "the bill is paid"),
    ]
    results = [message for message in await chat.messages("t") if message["role"] == "tool"]
    assert [message["content"] for message in results] == ["the bill is paid"]


@pytest.mark.requirement("AGT-16")
async def test_the_group_of_the_hidden_thread_may_be_another(open_chat: OpenChat) -> None:
    desk, _ = family([asking(), "all paid"], ["paid"], [], group_id="bills")
    chat = await open_chat(agents=[desk])
    await chat.run("t", user("pay", "u1"))
    (child,) = await children(chat)
    assert (child["parentThreadId"], child["groupId"]) == ("t", "bills")


@pytest.mark.requirement("AGUI-02", "AGUI-08")
async def test_clients_of_the_older_generation_hear_nothing_of_other_agents(open_chat: OpenChat) -> None:
    desk, _ = family([asking(), "all paid"], ["paid"], [])
    chat = await open_chat(agents=[desk])
    body = chat.body("t", user("pay", "u1"))
    del body["protocolVersion"]
    async with chat.streaming(body) as stream:
        events = await stream.rest()
    assert kinds(events) == []
    assert text_of(events) == "all paid"


async def paused(chat: Chat) -> tuple[dict[str, Any], list[SseFrame]]:
    events = await chat.run("t", user("pay", "u1"), run="r1")
    outcome = events[-1].data["outcome"]
    assert outcome["type"] == "interrupt"
    (interrupt,) = outcome["interrupts"]
    return interrupt, events


def yes(interrupt: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]


@pytest.mark.requirement("AGT-16", "AGUI-09")
async def test_what_the_other_agent_asks_is_asked_above_and_answered_there_once(open_chat: OpenChat) -> None:
    log: list[str] = []
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, bank = family([asking(), "all paid"], [pays, "the bill is paid"], log)
    chat = await open_chat(agents=[desk])
    interrupt, events = await paused(chat)
    assert (interrupt["toolCallId"], interrupt["reason"], log) == ("a", "tool_call", [])
    finished = next(event.data for event in events if event.type == "SUBAGENT_FINISHED")
    assert finished["outcome"] == {"type": "suspended", "interruptIds": [interrupt["id"]]}
    again = await chat.run("t", *await chat.messages("t"), resume=yes(interrupt), run="r2")
    assert (text_of(again), log, len(bank.prompts)) == ("all paid", ["paid"], 2)
    (child,) = await children(chat)
    assert [run["status"] for run in await chat.runs(child["threadId"])] == ["paused", "completed"]
    assert [run["parentRunId"] for run in await chat.runs(child["threadId"])] == ["r1", "r2"]


@pytest.mark.requirement("AGT-16")
async def test_stopping_a_run_stops_the_one_below(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    desk, _ = family([asking()], [["thinking ", gate, "never"]], [])
    chat = await open_chat(agents=[desk])
    async with chat.streaming(chat.body("t", user("pay", "u1"), run="r1")) as stream:
        await stream.until("SUBAGENT_STARTED")
        answer = await chat.client.post("/threads/t/runs/r1/stop")
        assert answer.status_code in (200, 202)
        events = await stream.rest()
    assert events[-1].data["outcome"] == {"type": "cancelled"}
    (child,) = await children(chat)

    async def stopped() -> bool:
        return [run["status"] for run in await chat.runs(child["threadId"])] == ["stopped"]

    await eventually(stopped)
    assert [run["status"] for run in await chat.runs("t")] == ["stopped"]


@pytest.mark.requirement("AGT-16", "HIS-08")
async def test_the_hidden_thread_goes_with_the_one_above(open_chat: OpenChat) -> None:
    desk, _ = family([asking(), "all paid"], ["paid"], [])
    chat = await open_chat(agents=[desk])
    await chat.run("t", user("pay", "u1"))
    assert (await chat.client.delete("/threads/t")).status_code == 204
    assert await chat.threads(include_hidden="true") == []


async def test_an_agent_that_fails_is_a_failed_call_for_the_one_who_asked(open_chat: OpenChat) -> None:
    desk, _ = family([asking(), "sorry"], [[ValueError("no")]], [])
    chat = await open_chat(agents=[desk])
    events = await chat.run("t", user("pay", "u1"))
    assert kinds(events) == ["SUBAGENT_STARTED", "SUBAGENT_ERROR"]
    (result,) = [message for message in await chat.messages("t") if message["role"] == "tool"]
    assert result["metadata"]["isError"]
    assert text_of(events) == "sorry"
