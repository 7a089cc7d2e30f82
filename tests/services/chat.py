"""A server with an agent that follows a script, and a client that talks to it over a real socket."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.agent.agent import Agent
from app.agent.context import Runnable
from app.agent.limits import Limits
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tools import ToolLike
from app.main import create_app
from app.settings import Settings
from tests.services.server import Serve
from tests.services.sse import SseFrame, frames

SECONDS = 20.0
"""How long a client waits for anything."""


class Stream:
    """An open event stream, read piece by piece."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._frames = frames(response)

    async def until(self, type: str) -> list[SseFrame]:
        """Reads events up to and including the next of this type."""
        read: list[SseFrame] = []
        async for frame in self._frames:
            read.append(frame)
            if frame.type == type:
                return read
        raise AssertionError(f"the stream ended without {type}: {[frame.type for frame in read]}")

    async def rest(self) -> list[SseFrame]:
        """Reads to the end."""
        return [frame async for frame in self._frames]


class Chat:
    """A client of one server. `model` is the script of its agent `assistant`, if it has one."""

    def __init__(self, base_url: str, client: httpx.AsyncClient, model: ScriptedModel | None = None) -> None:
        self.base_url = base_url
        self.client = client
        self._model = model

    @property
    def model(self) -> ScriptedModel:
        assert self._model is not None
        return self._model

    def body(self, thread: str, *messages: Any, run: str | None = None, **more: Any) -> dict[str, Any]:
        """A RunAgentInput: texts become user messages with fresh ids, objects stand as they are."""
        said = [
            {"id": f"u-{uuid4().hex[:12]}", "role": "user", "content": message}
            if isinstance(message, str)
            else message
            for message in messages
        ]
        return {
            "threadId": thread,
            "runId": run or f"run-{uuid4().hex[:12]}",
            "protocolVersion": "1.0",
            "messages": said,
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
            **more,
        }

    @asynccontextmanager
    async def streaming(self, body: Any, agent: str = "assistant") -> AsyncGenerator[Stream]:
        """The open answer to a run request."""
        async with self.client.stream("POST", f"/agents/{agent}/run", json=body) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    @asynccontextmanager
    async def following(self, path: str, **headers: str) -> AsyncGenerator[Stream]:
        """An open GET stream."""
        async with self.client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    async def run(self, thread: str, *messages: Any, **more: Any) -> list[SseFrame]:
        """Runs to the end and gives every event."""
        async with self.streaming(self.body(thread, *messages, **more)) as stream:
            return await stream.rest()

    async def post_run(self, body: Any, agent: str = "assistant") -> httpx.Response:
        """Posts a run request and reads the whole answer, whatever it is."""
        return await self.client.post(f"/agents/{agent}/run", json=body)

    async def messages(self, thread: str, **query: Any) -> list[dict[str, Any]]:
        answer = await self.client.get(f"/threads/{thread}/messages", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["messages"]

    async def texts(self, thread: str) -> list[tuple[str, Any]]:
        """(role, content) of every message of the thread."""
        return [(message["role"], message.get("content")) for message in await self.messages(thread)]

    async def threads(self, **query: Any) -> list[dict[str, Any]]:
        answer = await self.client.get("/threads", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["threads"]

    async def runs(self, thread: str) -> list[dict[str, Any]]:
        answer = await self.client.get(f"/threads/{thread}/runs")
        assert answer.status_code == 200, answer.text
        return answer.json()["runs"]


def user(content: Any, id: str | None = None, **more: Any) -> dict[str, Any]:
    """A user message as a client sends it."""
    return {"id": id or f"u-{uuid4().hex[:12]}", "role": "user", "content": content, **more}


def text_of(events: Sequence[SseFrame]) -> str:
    """All text that was streamed."""
    return "".join(event.data["delta"] for event in events if event.type == "TEXT_MESSAGE_CONTENT")


OpenChat = Callable[..., Awaitable[Chat]]


@pytest.fixture
async def open_chat(serve: Serve, tmp_path: Path) -> AsyncGenerator[OpenChat]:
    """`await open_chat("first reply", […], tools=[…])` serves a scripted `assistant` on SQLite.

    `agents` serves others instead; `settings` are those of the server.
    """
    clients: list[httpx.AsyncClient] = []

    async def start(
        *replies: Reply,
        tools: Sequence[ToolLike] = (),
        limits: Limits | None = None,
        inputs: frozenset[str] = frozenset(),
        agents: Sequence[Runnable] | None = None,
        **settings: Any,
    ) -> Chat:
        model = ScriptedModel(replies, inputs=inputs)
        serving = agents or [Agent("assistant", model=model, tools=tools, limits=limits)]
        configured = Settings.model_validate({"data_dir": tmp_path / "data", **settings})
        base_url = await serve(create_app(configured, agents={agent.name: agent for agent in serving}))
        client = httpx.AsyncClient(base_url=base_url, timeout=SECONDS, trust_env=False)
        clients.append(client)
        return Chat(base_url, client, model)

    yield start
    for client in clients:
        await client.aclose()
