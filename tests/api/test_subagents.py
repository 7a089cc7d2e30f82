"""Agents that ask other agents, on a server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tools import tool
from app.main import create_app
from app.settings import Settings
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
    assert [run["status"] for run in await chat.runs("t")] == ["paused", "completed"]
    assert kinds(again) == ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]
    finished = next(event.data for event in again if event.type == "SUBAGENT_FINISHED")
    assert finished["outcome"] == {"type": "success"}


@asynccontextmanager
async def opened(data: Path, desk: Agent) -> AsyncGenerator[Chat]:
    """The application on this directory, for as long as the block lasts."""
    app = create_app(Settings.model_validate({"data_dir": data}), agents={desk.name: desk})
    async with app.router.lifespan_context(app) as state:

        async def door(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "state": dict(state or {})}, receive, send)

        transport = httpx.ASGITransport(door)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield Chat("http://localhost", client)


@pytest.mark.requirement("AGT-16", "AGUI-09", "HIS-08")
async def test_a_question_from_below_is_answered_after_the_directory_was_opened_again(tmp_path: Path) -> None:
    log: list[str] = []
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, _ = family([asking()], [pays], log)
    async with opened(tmp_path, desk) as chat:
        interrupt, _ = await paused(chat)
        (before,) = await children(chat)
    desk, bank = family(["all paid"], ["the bill is paid"], log)
    async with opened(tmp_path, desk) as chat:
        events = await chat.run("t", *await chat.messages("t"), resume=yes(interrupt), run="r2")
        assert (text_of(events), log, len(bank.prompts)) == ("all paid", ["paid"], 1)
        (child,) = await children(chat)
        places = ("threadId", "parentThreadId", "groupId", "hidden")
        assert [child[key] for key in places] == [before[key] for key in places]
        below = await chat.runs(child["threadId"])
        assert [(run["parentRunId"], run["status"]) for run in below] == [
            ("r1", "paused"),
            ("r2", "completed"),
        ]
        assert [run["status"] for run in await chat.runs("t")] == ["paused", "completed"]


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


@pytest.mark.requirement("AGT-16", "HIS-08", "AGUI-14")
async def test_a_resumed_hidden_thread_keeps_its_place_and_is_readable_by_its_id(open_chat: OpenChat) -> None:
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, _ = family([asking(), "all paid"], [pays, "the bill is paid"], [])
    chat = await open_chat(agents=[desk])
    interrupt, _ = await paused(chat)
    (before,) = await children(chat)
    await chat.run("t", resume=yes(interrupt), run="r2")
    (after,) = await children(chat)
    places = ("threadId", "parentThreadId", "groupId", "hidden")
    assert [after[key] for key in places] == [before[key] for key in places]
    assert after["runCount"] == 2
    assert [thread["threadId"] for thread in await chat.threads()] == ["t"]
    assert [role for role, _ in await chat.texts(after["threadId"])] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.requirement("AGT-16", "HIS-08")
async def test_an_agent_below_an_agent_below_has_a_thread_below_that_ones(open_chat: OpenChat) -> None:
    log: list[str] = []
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, _ = family([asking(), "all paid"], [pays, "the bill is paid"], log)
    boss_model = ScriptedModel([[CallPiece("b", '{"request": "see to it"}', name="assistant")], "good"])
    boss = Agent("boss", model=boss_model, tools=[desk.as_tool()])
    chat = await open_chat(agents=[boss])
    answer = await chat.post_run(chat.body("t", user("go", "u1"), run="r1"), "boss")
    assert answer.status_code == 200
    threads = {thread["agent"]: thread for thread in await children(chat)}
    middle = threads["assistant"]
    assert (middle["parentThreadId"], middle["groupId"]) == ("t", "t")
    assert (threads["bank"]["parentThreadId"], threads["bank"]["groupId"]) == (middle["threadId"],) * 2
    (run,) = await chat.runs("t")
    (interrupt,) = run["interrupts"]
    answer = await chat.post_run(chat.body("t", run="r2", resume=yes(interrupt)), "boss")
    assert (answer.status_code, log) == (200, ["paid"])
    assert (await chat.texts("t"))[-1] == ("assistant", "good")
    assert (await chat.client.delete("/threads/t")).status_code == 204
    assert await chat.threads(include_hidden="true") == []


@pytest.mark.requirement("AGT-16", "HIS-20")
async def test_deleting_the_thread_above_stops_the_run_below_and_takes_it_along(open_chat: OpenChat) -> None:
    desk, bank = family([asking()], [["thinking ", asyncio.Event(), "never"]], [])
    chat = await open_chat(agents=[desk])
    async with chat.streaming(chat.body("t", user("pay", "u1"), run="r1")) as stream:
        await stream.until("SUBAGENT_STARTED")
        await eventually(lambda: len(bank.prompts) == 1)
        assert (await chat.client.delete("/threads/t")).status_code == 204
        await stream.rest()
    assert await chat.threads(include_hidden="true") == []
    assert bank.closed == 1


@pytest.mark.requirement("AGT-16", "HIS-08")
async def test_a_paused_hidden_thread_goes_with_the_one_above(open_chat: OpenChat) -> None:
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, _ = family([asking()], [pays], [])
    chat = await open_chat(agents=[desk])
    await paused(chat)
    assert (await chat.client.delete("/threads/t")).status_code == 204
    assert await chat.threads(include_hidden="true") == []


@pytest.mark.requirement("AGT-16")
async def test_an_answer_for_a_hidden_thread_that_was_deleted_is_a_failed_call(open_chat: OpenChat) -> None:
    log: list[str] = []
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, _ = family([asking(), "sorry"], [pays], log)
    chat = await open_chat(agents=[desk])
    interrupt, _ = await paused(chat)
    (child,) = await children(chat)
    assert (await chat.client.delete(f"/threads/{child['threadId']}")).status_code == 204
    events = await chat.run("t", resume=yes(interrupt), run="r2")
    assert (text_of(events), kinds(events), log) == ("sorry", [], [])
    (result,) = [message for message in await chat.messages("t") if message["role"] == "tool"]
    assert result["metadata"]["isError"]


@pytest.mark.requirement("AGT-16", "HIS-06")
async def test_two_answers_at_once_are_carried_out_once(open_chat: OpenChat) -> None:
    log: list[str] = []
    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    desk, bank = family([asking(), "all paid"], [pays, "paid"], log)
    chat = await open_chat(agents=[desk])
    interrupt, _ = await paused(chat)
    bodies = [chat.body("t", run=run, resume=yes(interrupt)) for run in ("r2", "r3")]
    answers = await asyncio.gather(*map(chat.post_run, bodies))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert [run["status"] for run in await chat.runs("t")] == ["paused", "completed"]
    assert (log, len(bank.prompts)) == (["paid"], 2)


@pytest.mark.requirement("AGT-16", "HIS-06")
async def test_what_was_answered_in_the_hidden_thread_itself_is_not_carried_out_again(
    open_chat: OpenChat,
) -> None:
    log: list[str] = []

    @tool(approval=True)
    def pay() -> str:
        log.append("paid")
        return "paid"

    pays = [CallPiece("p", "{}", name="pay", call_id="p")]
    bank = Agent("bank", model=ScriptedModel([pays, "the bill is paid"]), tools=[pay])
    desk = Agent("assistant", model=ScriptedModel([asking(), "I see"]), tools=[bank.as_tool()])
    chat = await open_chat(agents=[desk, bank])
    interrupt, _ = await paused(chat)
    (child,) = await children(chat)
    body = chat.body(child["threadId"], run="below", resume=yes(interrupt))
    assert (await chat.post_run(body, "bank")).status_code == 200
    assert log == ["paid"]
    assert text_of(await chat.run("t", run="r2", resume=yes(interrupt))) == "I see"
    assert log == ["paid"]
    (result,) = [message for message in await chat.messages("t") if message["role"] == "tool"]
    assert result["metadata"]["isError"]


@pytest.mark.requirement("AGT-16", "AGUI-09")
async def test_questions_below_must_all_be_answered_and_edited_arguments_arrive_there(
    open_chat: OpenChat,
) -> None:
    log: list[int] = []

    @tool(approval=True)
    def pay(amount: int) -> str:
        log.append(amount)
        return f"paid {amount}"

    both = [CallPiece(id, '{"amount": 1}', name="pay", call_id=id) for id in ("p1", "p2")]
    bank = Agent("bank", model=ScriptedModel([both, "all paid"]), tools=[pay])
    desk = Agent("assistant", model=ScriptedModel([asking(), "done"]), tools=[bank.as_tool()])
    chat = await open_chat(agents=[desk])
    events = await chat.run("t", user("pay", "u1"), run="r1")
    first, second = events[-1].data["outcome"]["interrupts"]
    half = await chat.post_run(chat.body("t", run="r2", resume=yes(first)))
    assert (half.status_code, half.json()["code"], log) == (409, "interrupts_open", [])
    (edited,) = yes(second)
    edited["payload"]["editedArgs"] = {"amount": "much"}
    wrong = await chat.post_run(chat.body("t", run="r3", resume=[*yes(first), edited]))
    assert (wrong.status_code, log) == (422, [])
    edited["payload"]["editedArgs"] = {"amount": 7}
    assert text_of(await chat.run("t", run="r4", resume=[*yes(first), edited])) == "done"
    assert sorted(log) == [1, 7]
