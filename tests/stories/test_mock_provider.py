"""A conversation with tools against somebody else's provider, with the server killed between its turns."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.services.chat import SECONDS, Chat, text_of
from tests.services.missing import missing
from tests.services.node import Node, NotInstalled, npm_ci
from tests.services.server import Launch, ServerProcess, free_port
from tests.services.waiting import eventually

MANIFEST = Path(__file__).parent / "provider"
CITIES = ("Basel", "Bern", "Chur", "Genf")
AGENT = """
from app.agent.agent import Agent


def get_weather(city: str) -> str:
    "Tells the weather."
    return f"sunny in {city}"


agent = Agent("assistant", instructions="Be good.", tools=[get_weather])
"""


def fixtures() -> dict[str, Any]:
    """For each city: a call of the tool, and then what came of it. Ids are given, or each would be random."""
    told: list[dict[str, Any]] = []
    for number, city in enumerate(CITIES):
        asked = {"userMessage": city}
        call = {
            "id": f"call_{number}",
            "name": "get_weather",
            "arguments": json.dumps({"city": city}),
        }
        told += [
            {
                "match": {**asked, "hasToolResult": False},
                "response": {"content": f"I look at {city}.", "toolCalls": [call]},
            },
            {"match": {**asked, "hasToolResult": True}, "response": {"content": f"It is sunny in {city}."}},
        ]
    return {"fixtures": told}


@dataclass(slots=True)
class MockProvider:
    url: str
    client: httpx.AsyncClient

    async def requests(self) -> list[dict[str, Any]]:
        """What it recorded since the last look: path, length in bytes and body of every request."""
        entries = (await self.client.get("/__aimock/journal")).raise_for_status().json()
        (await self.client.post("/__aimock/reset/journal")).raise_for_status()
        assert [entry["response"]["status"] for entry in entries] == [200] * len(entries)
        return [
            {
                "path": entry["path"],
                "length": entry["headers"]["content-length"],
                "body": entry["body"],
            }
            for entry in entries
        ]


async def _answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/__aimock/journal")).is_success
    except httpx.TransportError:
        return False


@asynccontextmanager
async def serving(node: Node, packages: Path, folder: Path) -> AsyncGenerator[MockProvider]:
    written = folder / "fixtures.json"
    written.write_text(json.dumps(fixtures()))
    cli = packages / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        node.executable,
        cli,
        *("--port", str(port), "--fixtures", str(written), "--log-level", "silent", "--strict"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=SECONDS, trust_env=False) as client:
            await eventually(lambda: _answers(client))
            yield MockProvider(url, client)
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
async def mock_provider(node: Node, tmp_path: Path) -> AsyncGenerator[MockProvider]:
    """The npm package as a provider, in a process of its own."""
    try:
        packages = npm_ci(node, MANIFEST, "mock-provider")
    except NotInstalled as error:
        missing(str(error), "Give npm a registry that it can reach (`npm config set registry …`)")
    async with serving(node, packages, tmp_path) as mock:
        yield mock


async def turn(server: ServerProcess, number: int) -> str:
    """Asks for one city; the text of the answer."""
    async with httpx.AsyncClient(base_url=server.base_url, timeout=SECONDS, trust_env=False) as client:
        chat = Chat(server.base_url, client)
        events = await chat.run("t", {"id": f"u-{number}", "role": "user", "content": CITIES[number]})
        assert events[-1].type == "RUN_FINISHED", events[-1].data
        return text_of(events)


@pytest.mark.requirement("INT-01", "MSG-15", "HIS-04")
@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("openai:gpt-5", "/v1/chat/completions"),
        ("anthropic:claude-opus-4-8", "/v1/messages"),
    ],
)
async def test_a_server_killed_between_all_turns_sends_what_an_undisturbed_one_sends(
    mock_provider: MockProvider, launch: Launch, tmp_path: Path, model: str, path: str
) -> None:
    (tmp_path / "weather.py").write_text(AGENT)
    settings = {
        "AGENTS": "weather:agent",
        "MODEL": model,
        "OPENAI_API_KEY": "mock",
        "OPENAI_BASE_URL": f"{mock_provider.url}/v1",
        "ANTHROPIC_API_KEY": "mock",
        "ANTHROPIC_BASE_URL": mock_provider.url,
    }
    undisturbed = await launch(**settings, DATA_DIR=str(tmp_path / "one"))
    answers = [await turn(undisturbed, number) for number in range(len(CITIES))]
    expected = await mock_provider.requests()
    for number, answer in enumerate(answers):
        server = await launch(**settings, DATA_DIR=str(tmp_path / "two"))
        assert await turn(server, number) == answer
        await server.kill()
    assert await mock_provider.requests() == expected
    assert len(expected) == 2 * len(CITIES)
    assert {request["path"].partition("?")[0] for request in expected} == {path}
    assert answers[-1] == "I look at Genf.It is sunny in Genf."
    last = json.dumps(expected[-1]["body"])
    for city in CITIES:
        assert f"sunny in {city}" in last
