"""The server over somebody's own storage: it keeps its promises, and says what the storage cannot do."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from copy import copy
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import Reply, ScriptedModel
from app.agent.tools import ToolLike
from app.main import create_app
from app.settings import Settings
from tests.contracts.somebodys_store import VARIANTS, Everything, Listing, Paging, SomebodysStore
from tests.services.chat import SECONDS, Chat, OpenChat, text_of, user
from tests.services.server import Serve

OpenOver = Callable[..., Awaitable[Chat]]


@pytest.fixture
async def open_over(serve: Serve, tmp_path: Path) -> AsyncGenerator[OpenOver]:
    """`await open_over(adapter, "reply", tools=[…])` serves a scripted `assistant` over a storage."""
    clients: list[httpx.AsyncClient] = []

    async def start(adapter: SomebodysStore, *replies: Reply, tools: list[ToolLike] | None = None) -> Chat:
        model = ScriptedModel(replies)
        agent = Agent("assistant", model=model, tools=tools or [])
        settings = Settings.model_validate({"data_dir": tmp_path / "data"})
        base_url = await serve(create_app(settings, agents={"assistant": agent}, store=adapter))
        clients.append(httpx.AsyncClient(base_url=base_url, timeout=SECONDS, trust_env=False))
        return Chat(base_url, clients[-1], model)

    yield start
    for client in clients:
        await client.aclose()


def snapshot(adapter: SomebodysStore) -> SomebodysStore:
    """What a power cut would leave of the storage."""
    left = copy(adapter)
    left.turns, left.thread_of = dict(adapter.turns), dict(adapter.thread_of)
    left.heads, left.made = dict(adapter.heads), dict(adapter.made)
    return left


def nameless(value: Any) -> Any:
    """JSON without what differs between two servers that were told the same: made ids and times."""
    if isinstance(value, list):
        return [nameless(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: nameless(each) for name, each in value.items() if name not in ("id", "createdAt")}  # pyright: ignore[reportUnknownVariableType]
    return value


async def transcript(chat: Chat, limit: int) -> list[Any]:
    """Every page of the thread's transcript, newest first."""
    pages: list[Any] = []
    query: dict[str, str] = {"limit": str(limit)}
    while True:
        pages.append((await chat.client.get("/threads/t/transcript", params=query)).json())
        following = pages[-1]["nextBeforeRunId"]
        if following is None:
            return pages
        query["before_run_id"] = following


@pytest.mark.requirement("HIS-14")
@pytest.mark.parametrize("kind", VARIANTS)
async def test_a_conversation_over_any_storage_reads_as_over_the_database(
    kind: type[SomebodysStore], open_over: OpenOver, open_chat: OpenChat, tmp_path: Path
) -> None:
    replies = [f"answer {number}" for number in range(5)]
    ours, theirs = await open_chat(*replies), await open_over(kind(), *replies)
    for chat in (ours, theirs):
        for number in range(5):
            said = user(f"question {number}", f"u{number}")
            events = await chat.run("t", said, run=f"r{number}", state={"number": number})
            assert (text_of(events), events[-1].type) == (f"answer {number}", "RUN_FINISHED")
        assert len(chat.model.prompts[-1].messages) == 9
    for limit in (1, 2, 50):
        assert nameless(await transcript(theirs, limit)) == nameless(await transcript(ours, limit))
    assert nameless(await theirs.messages("t")) == nameless(await ours.messages("t"))
    for path in ("/threads/t", "/threads/t/state", "/threads/t/runs/r2"):
        mine, other = [(await chat.client.get(path)).json() for chat in (theirs, ours)]
        for times in ("updatedAt", "endedAt"):
            assert bool(mine.pop(times, None)) == bool(other.pop(times, None))
        assert nameless(mine) == nameless(other)


@pytest.mark.requirement("HIS-14")
async def test_a_storage_that_cannot_list_answers_501_and_all_by_id_works(open_over: OpenOver) -> None:
    chat = await open_over(SomebodysStore(), "hello", "again")
    await chat.run("t", "hi", run="r1")
    answer = await chat.client.get("/threads")
    assert (answer.status_code, answer.json()["code"]) == (501, "not_supported")
    assert await chat.texts("t") == [("user", "hi"), ("assistant", "hello")]
    assert [run["status"] for run in await chat.runs("t")] == ["completed"]
    assert (await chat.client.get("/threads/t")).json()["title"] == "hi"
    again = await chat.client.get("/threads/t/runs/r1/events")
    assert '"RUN_FINISHED"' in again.text
    for missing in ("/threads/x", "/threads/x/messages", "/threads/t/runs/x"):
        assert (await chat.client.get(missing)).status_code == 404
    for method, path, body in (
        ("POST", "/threads", {"threadId": "new"}),
        ("PATCH", "/threads/t", {"title": "other"}),
        ("DELETE", "/threads/t", None),
    ):
        refused = await chat.client.request(method, path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (501, "not_supported")


@pytest.mark.requirement("HIS-14")
@pytest.mark.parametrize("kind", [Listing, Everything])
async def test_a_storage_that_lists_is_asked(kind: type[SomebodysStore], open_over: OpenOver) -> None:
    chat = await open_over(kind(), "one", "two", "three")
    await chat.run("a", "first")
    await chat.run("b", "second")
    await chat.run("c", "unseen", forwardedProps={"conversation": {"hidden": True, "groupId": "g"}})
    assert [(t["threadId"], t["title"]) for t in await chat.threads()] == [("b", "second"), ("a", "first")]
    hidden = (await chat.client.get("/threads/c")).json()
    assert (hidden["hidden"], hidden["groupId"], hidden["messageCount"]) == (True, "g", 2)


@pytest.mark.requirement("HIS-14")
async def test_a_used_run_id_and_a_busy_thread_are_refused(open_over: OpenOver) -> None:
    gate = asyncio.Event()
    chat = await open_over(SomebodysStore(), "done", [gate, "done"])
    await chat.run("t", "one", run="r1")
    for thread in ("t", "other"):
        used = await chat.post_run(chat.body(thread, "again", run="r1"))
        assert (used.status_code, used.json()["code"]) == (409, "run_exists")
    live = await chat.client.post("/threads/t/runs", json={"text": "two", "runId": "r2"})
    assert live.status_code == 202
    busy = await chat.post_run(chat.body("t", "three"))
    assert (busy.status_code, busy.json()["code"], busy.json()["runId"]) == (409, "thread_busy", "r2")
    gate.set()


@pytest.mark.requirement("HIS-14", "HIS-22")
async def test_another_server_finds_everything_and_ends_what_was_cut(open_over: OpenOver) -> None:
    reached, gate = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Waits."""
        reached.set()
        await gate.wait()
        return "done"

    call = CallPiece("0", "{}", name="wait", call_id="call")
    adapter = Paging()
    first = await open_over(adapter, "hello", ["Let me see.", call], "after", tools=[wait])
    await first.run("t", "hi", run="r1", state={"a": 1})
    await first.client.post("/threads/t/runs", json={"text": "wait", "runId": "r2"})
    async with asyncio.timeout(SECONDS):
        await reached.wait()
    before = await first.messages("t")
    second = await open_over(snapshot(adapter), "Here I am.")
    page = (await second.client.get("/threads/t/transcript")).json()
    assert (page["latest"]["status"], page["latest"]["state"]) == ("failed", {"a": 1})
    after = await second.messages("t")
    assert after[: len(before)] == before
    assert [(m["role"], m.get("toolCallId")) for m in after[len(before) :]] == [("tool", "call")]
    runs = [(run["runId"], run["status"], run["endReason"]) for run in await second.runs("t")]
    assert runs == [("r1", "completed", "done"), ("r2", "failed", "server_restart")]
    assert text_of(await second.run("t", "still there?")) == "Here I am."
    gate.set()


@pytest.mark.requirement("HIS-22")
async def test_a_store_that_the_server_was_handed_stays_open(tmp_path: Path) -> None:
    adapter = SomebodysStore()
    settings = Settings.model_validate({"data_dir": tmp_path / "data"})
    app = create_app(settings, agents={"a": Agent("a", model=ScriptedModel(["x"]))}, store=adapter)
    async with app.router.lifespan_context(app):
        pass
    assert not adapter.closed
    assert not (tmp_path / "data").exists()
