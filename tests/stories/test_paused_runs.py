"""Questions outlive the process that asked them."""

from pathlib import Path
from typing import Any

import pytest

from tests.services.chat import Chat, user
from tests.services.server import Launch
from tests.stories.test_restarts import talk_to

AGENTS = '''
import asyncio
from pathlib import Path

from app.agent.agent import Agent
from app.agent.models.base import CallPiece, Finished, TextPiece
from app.agent.tools import tool
from app.conversation.messages import Role, StopReason

PAID = Path("paid.txt")
SLOW = False


class Calling:
    """Calls its tool once for each message of a user, and then says that it is done."""

    provider, inputs = "calling", frozenset()

    def __init__(self, tool, arguments):
        self.name = self.tool = tool
        self.arguments = arguments

    async def stream(self, prompt):
        if prompt.messages[-1].role is Role.TOOL_RESULT:
            yield TextPiece("it says: " + prompt.messages[-1].join_text("|"))
            yield Finished(StopReason.STOP)
        elif prompt.messages[-2:-1] and prompt.messages[-2].role is Role.TOOL_RESULT:
            yield TextPiece("heard: " + prompt.messages[-1].join_text())
            yield Finished(StopReason.STOP)
        else:
            yield CallPiece("0", self.arguments, name=self.tool)
            yield Finished(StopReason.TOOL_USE)


@tool(approval=True)
async def pay(amount: int) -> str:
    with PAID.open("a") as file:
        file.write(f"{amount}\\n")
    if SLOW:
        await asyncio.sleep(600)
    return f"paid {amount}"


bank = Agent("bank", model=Calling("pay", '{"amount": 5}'), tools=[pay])
assistant = Agent("assistant", model=Calling("bank", '{"request": "pay"}'), tools=[bank.as_tool()])
plain = Agent("plain", model=Calling("pay", '{"amount": 5}'), tools=[pay])
'''


def paid(tmp_path: Path) -> list[str]:
    file = tmp_path / "paid.txt"
    return file.read_text().split() if file.exists() else []


async def interrupts(chat: Chat, thread: str) -> list[dict[str, Any]]:
    (*_, run) = await chat.runs(thread)
    return run["interrupts"]


def yes(interrupt: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True, **more}}]


@pytest.mark.requirement("AGUI-09", "HIS-06", "AGT-16")
@pytest.mark.parametrize("agent", ["plain", "assistant"])
async def test_a_question_is_answered_after_the_process_that_asked_was_killed(
    launch: Launch, tmp_path: Path, agent: str
) -> None:
    (tmp_path / "banking.py").write_text(AGENTS)
    server = await launch(AGENTS="banking:assistant,banking:plain")
    async with talk_to(server) as chat:
        answer = await chat.post_run(chat.body("t", user("pay", "u1"), run="r1"), agent)
        assert '"interrupt"' in answer.text
        (asked,) = await interrupts(chat, "t")
        await server.kill()
    again = await launch(AGENTS="banking:assistant,banking:plain")
    async with talk_to(again) as chat:
        assert await interrupts(chat, "t") == [asked]
        body = chat.body("t", *await chat.messages("t"), user("thanks", "u2"), resume=yes(asked), run="r2")
        answer = await chat.post_run(body, agent)
        assert "heard: thanks" in answer.text
        assert paid(tmp_path) == ["5"]
        assert [role for role, _ in await chat.texts("t")] == [
            "user",
            "assistant",
            "tool",
            "user",
            "assistant",
        ]
        # The same answer again asks for nothing that was not done.
        repeated = await chat.post_run({**body, "runId": "r3"}, agent)
        assert repeated.status_code == 200
        assert paid(tmp_path) == ["5"]


@pytest.mark.requirement("AGUI-09", "LIVE-01")
async def test_what_came_with_an_answer_is_kept_when_the_server_dies_while_the_tool_runs(
    launch: Launch, tmp_path: Path
) -> None:
    (tmp_path / "banking.py").write_text(AGENTS)
    server = await launch(AGENTS="banking:plain")
    async with talk_to(server) as chat:
        await chat.post_run(chat.body("t", user("pay", "u1"), run="r1"), "plain")
        (asked,) = await interrupts(chat, "t")
        await server.kill()
    (tmp_path / "banking.py").write_text(AGENTS.replace("SLOW = False", "SLOW = True"))
    slow = await launch(AGENTS="banking:plain")
    async with talk_to(slow) as chat:
        history = await chat.messages("t")
        body = chat.body("t", *history, user("thanks", "u2"), resume=yes(asked), run="r2")
        async with chat.streaming(body, "plain") as stream:
            await stream.until("STEP_STARTED")
            while not paid(tmp_path):
                await chat.client.get("/healthz")
            await slow.kill()
    (tmp_path / "banking.py").write_text(AGENTS)
    again = await launch(AGENTS="banking:plain")
    async with talk_to(again) as chat:
        said = await chat.messages("t")
        assert [message["role"] for message in said] == ["user", "assistant", "tool", "user"]
        assert said[2]["metadata"]["isError"]
        assert said[3]["content"] == "thanks"
        answer = await chat.post_run(chat.body("t", *said, run="r3"), "plain")
        assert "heard: thanks" in answer.text
        assert paid(tmp_path) == ["5"]
