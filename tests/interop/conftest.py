"""A server with scripted agents, and the two generations of clients to talk to it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from app.agent.agent import Agent
from app.agent.models.base import CallPiece, Finished, Model, ModelError, TextPiece, ThinkingPiece
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.subagent import agent_tool
from app.agent.tool_context import ToolContext
from app.agent.tools import Tool, ToolError, tool
from app.conversation.messages import StopReason, Usage
from app.main import create_app
from app.settings import Settings
from tests.services.node import Node
from tests.services.server import Serve

CURRENT, OLDER = "@ag-ui/client", "ag-ui-client-059"
Drive = Callable[..., Awaitable[list[dict[str, Any]]]]
USAGE = Usage(input_tokens=7, output_tokens=3, total_tokens=10)


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def refuse(what: str) -> str:
    """Never works."""
    raise ToolError(f"no {what} today")


@tool(approval=True)
def send(to: str) -> str:
    """Sends it."""
    return f"sent to {to}"


@tool
def work(context: ToolContext) -> str:
    """Shows all that a tool can do beside its result."""
    context.progress(1, 2, "half")
    context.record("note", {"text": "kept", "nothing": None})
    context.record("note", "bare")
    context.record("flash", None, transient=True)
    context.patch_state([{"op": "replace", "path": "", "value": {"n": 1}}])
    context.patch_state([{"op": "add", "path": "/m", "value": None}, {"op": "remove", "path": "/n"}])
    return "worked"


def helper(_: Model) -> Agent:
    return Agent("helper", model=ScriptedModel(["Helped."]))


ask_helper = agent_tool(helper, name="ask_helper", description="Asks for help.")


def ask_courier() -> Tool:
    """An agent that may not send without being allowed to, and goes on where it asked."""
    model = ScriptedModel(
        [
            [
                CallPiece("0", name="send", call_id="call_s", arguments='{"to": "eve"}'),
                Finished(StopReason.TOOL_USE),
            ],
            "Delivered.",
        ]
    )
    return agent_tool(
        lambda _: Agent("courier", model=model, tools=[send]), name="ask_courier", description="Delivers."
    )


SCRIPTS: Mapping[str, Callable[[], Sequence[Reply]]] = {
    "text": lambda: [
        ["Good ", "day", ", 世界 \U0001f600\u2028", Finished(StopReason.STOP, usage=USAGE)],
        "And again.",
    ],
    "tool": lambda: [
        [
            ThinkingPiece("Let me ", signature=None),
            ThinkingPiece("add."),
            TextPiece("I will add. "),
            CallPiece("0", name="add", call_id="call_a"),
            CallPiece("0", arguments='{"a": 1, '),
            CallPiece("0", arguments='"b": 2}'),
            CallPiece("1", name="refuse", call_id="call_b", arguments='{"what": "luck"}'),
            Finished(StopReason.TOOL_USE, usage=USAGE),
        ],
        [
            CallPiece("0", name="add", call_id="call_c", arguments='{"a": 3, "b": 4}'),
            Finished(StopReason.TOOL_USE),
        ],
        ["It is ", "seven."],
        "You are welcome.",
    ],
    "calls alone": lambda: [
        [
            CallPiece("0", name="add", call_id="call_a", arguments='{"a": 1, "b": 2}'),
            CallPiece("1", name="add", call_id="call_b", arguments='{"a": 3, "b": 4}'),
            Finished(StopReason.TOOL_USE),
        ],
        "Three and seven.",
    ],
    "failing": lambda: [["So far ", "so good", ModelError("The model failed to answer.")], "Better now."],
    "failing at once": lambda: [[ModelError("The model failed to answer.")], "Better now."],
    "beside": lambda: [
        [
            CallPiece("0", name="work", call_id="call_a", arguments="{}"),
            CallPiece("1", name="ask_helper", call_id="call_b", arguments='{"request": "help"}'),
            Finished(StopReason.TOOL_USE),
        ],
        "All done.",
    ],
    "asking": lambda: [
        [
            TextPiece("May I? "),
            CallPiece("0", name="add", call_id="call_a", arguments='{"a": 1, "b": 2}'),
            CallPiece("1", name="send", call_id="call_b", arguments='{"to": "ann"}'),
            Finished(StopReason.TOOL_USE),
        ],
        "It is on its way.",
        "Anything else?",
    ],
    "asking below": lambda: [
        [
            ThinkingPiece("Who could?", encrypted="c2VhbA=="),
            CallPiece("0", name="ask_courier", call_id="call_a", arguments='{"request": "deliver"}'),
            Finished(StopReason.TOOL_USE),
        ],
        "It was delivered.",
        "You are welcome.",
    ],
    "client tools": lambda: [
        [CallPiece("0", name="map", call_id="call_a", arguments="{}"), Finished(StopReason.TOOL_USE)],
        "There it is.",
    ],
    "branches": lambda: ["First.", "Second.", "Third."],
    "stopped": lambda: [["This takes ", asyncio.Event()], "Where were we?"],
}


def scripted(name: str) -> Agent:
    """A fresh agent that follows the script of this name."""
    tools = [add, refuse, send, work, ask_helper, ask_courier()]
    return Agent("assistant", model=ScriptedModel(SCRIPTS[name]()), tools=tools)


@pytest.fixture
async def drive(node: Node, agui_clients: Path, serve: Serve, tmp_path: Path) -> Drive:
    """`await drive(client, script, turns)` gives what the client saw and found wrong in each turn."""

    async def run(client: str, script: str, turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        settings = Settings(data_dir=tmp_path / "data", port=0, database_url="sqlite://")
        base = await serve(create_app(settings, agents={"assistant": scripted(script)}))
        task = {"client": client, "base": base, "agent": "assistant", "thread": "t1", "turns": list(turns)}
        script_file = Path(__file__).parent / "drive.mjs"
        told = await node.run_json(script_file, json.dumps(task), cwd=agui_clients)
        return cast(dict[str, list[dict[str, Any]]], told)["turns"]

    return run
