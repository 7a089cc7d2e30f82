"""The real process: talked to, killed, ended, started again."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.services.chat import SECONDS, Chat, text_of
from tests.services.server import Launch, ServerProcess


@asynccontextmanager
async def talk_to(server: ServerProcess) -> AsyncGenerator[Chat]:
    async with httpx.AsyncClient(base_url=server.base_url, timeout=SECONDS, trust_env=False) as client:
        yield Chat(server.base_url, client)


async def history_bytes(chat: Chat, thread: str) -> bytes:
    return (await chat.client.get(f"/threads/{thread}/messages")).content


@pytest.mark.requirement("HIS-02", "HIS-04", "LIVE-01")
async def test_after_a_kill_every_finished_word_is_there_to_the_byte_and_the_thread_is_free(
    launch: Launch,
) -> None:
    server = await launch()
    async with talk_to(server) as chat:
        await chat.run("t", "hello")
        await chat.run("t", "what time is it in Tokyo and what is 6*7?")
        finished = await chat.messages("t")
        before = await history_bytes(chat, "t")
        async with chat.streaming(chat.body("t", "tell me a long story slowly", run="cut")) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT")
            await server.kill()
            with pytest.raises(httpx.TransportError):
                await stream.rest()
    again = await launch()
    async with talk_to(again) as chat:
        after = await history_bytes(chat, "t")
        assert after.startswith(before.removesuffix(b"]}"))
        assert (await chat.messages("t"))[: len(finished)] == finished
        assert (await chat.texts("t"))[-1] == ("user", "tell me a long story slowly")
        [*_, cut] = await chat.runs("t")
        assert (cut["runId"], cut["status"], cut["endReason"]) == ("cut", "failed", "server_restart")
        assert cut["error"]["code"] == "SERVER_RESTART"
        assert (await chat.run("t", "are you there?"))[-1].type == "RUN_FINISHED"


@pytest.mark.requirement("LIVE-01")
async def test_a_tool_call_cut_by_a_kill_has_a_result_after_the_start(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import asyncio\n"
        "from app.agent.agent import Agent\n"
        "from app.agent.models.base import CallPiece\n"
        "from app.agent.models.scripted import ScriptedModel\n"
        "async def work() -> str:\n"
        "    await asyncio.sleep(600)\n"
        "    return 'done'\n"
        "calls = [CallPiece('0', '{}', name='work', call_id='c')]\n"
        "agent = Agent('slow', model=ScriptedModel([calls, 'never']), tools=[work])\n"
    )
    server = await launch(AGENTS="slow:agent")
    async with talk_to(server) as chat, chat.streaming(chat.body("t", "go"), agent="slow") as stream:
        await stream.until("STEP_FINISHED")
        await server.kill()
    again = await launch(AGENTS="slow:agent")
    async with talk_to(again) as chat:
        messages = await chat.messages("t")
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[-1]["toolCallId"] == "c"
    assert messages[-1]["metadata"]["isError"] is True


@pytest.mark.requirement("AGUI-01")
async def test_sigterm_ends_every_live_run_with_a_terminal_event_and_the_process(launch: Launch) -> None:
    server = await launch()
    async with talk_to(server) as chat:

        async def follow(number: int) -> list[Any]:
            body = chat.body(f"t{number}", "tell me a long story slowly")
            async with chat.streaming(body) as stream:
                await stream.until("TEXT_MESSAGE_CONTENT")
                started.release()
                return await stream.rest()

        started = asyncio.Semaphore(0)
        followers = [asyncio.create_task(follow(number)) for number in range(20)]
        for _ in followers:
            await started.acquire()
        server.send(signal.SIGTERM)
        for follower in followers:
            events = await follower
            assert events[-1].type == "RUN_ERROR"
            assert events[-1].data["code"] == "SHUTDOWN"
    assert await server.ended() in (0, -signal.SIGTERM)
    again = await launch()
    async with talk_to(again) as chat:
        for number in range(20):
            [run] = await chat.runs(f"t{number}")
            assert (run["status"], run["endReason"]) == ("failed", "shutdown")
            partial = (await chat.messages(f"t{number}"))[-1]
            assert partial["content"]
            assert partial["metadata"]["stopReason"] == "aborted"


@pytest.mark.requirement("AGUI-01")
async def test_sigterm_ends_runs_that_nobody_follows(launch: Launch) -> None:
    server = await launch()
    async with talk_to(server) as chat:
        said = {"text": "tell me a long story slowly", "runId": "r"}
        assert (await chat.client.post("/threads/t/runs", json=said)).status_code == 202
    server.send(signal.SIGTERM)
    await server.ended()
    again = await launch()
    async with talk_to(again) as chat:
        [run] = await chat.runs("t")
        assert (run["status"], run["endReason"]) == ("failed", "shutdown")


@pytest.mark.requirement("OPS-02")
async def test_a_start_that_is_refused_says_why_and_shows_no_traceback(
    launch: Launch, tmp_path: Path
) -> None:
    taken = await launch()
    for settings, words in [
        ({"PORT": taken.base_url.rpartition(":")[2], "DATA_DIR": "elsewhere"}, "VERBATIM_PORT"),
        ({"HOST": "0.0.0.0"}, "VERBATIM_ALLOW_UNAUTHENTICATED"),
        ({"POTR": "1"}, "VERBATIM_POTR"),
        ({"AGENTS": "nowhere:agent"}, "AGENTS"),
        ({"MODEL": "unheard:of"}, "MODEL"),
        ({"DATABASE_URL": "mysql://x/y"}, "DATABASE_URL"),
    ]:
        server = await launch("serve", **settings)
        assert await server.ended() == 2
        assert words in server.output
        assert "Traceback" not in server.output


@pytest.mark.requirement("HIS-03")
async def test_a_second_server_on_the_same_data_is_refused_and_the_first_goes_on(launch: Launch) -> None:
    first = await launch()
    second = await launch("serve")
    assert await second.ended() == 2
    assert str(first.process.pid) in second.output
    assert "Traceback" not in second.output
    async with talk_to(first) as chat:
        assert text_of(await chat.run("t", "hello"))


@pytest.mark.requirement("HIS-02")
async def test_in_memory_nothing_is_written(launch: Launch, tmp_path: Path) -> None:
    server = await launch(DATABASE_URL="sqlite://")
    async with talk_to(server) as chat:
        await chat.run("t", "hello")
        assert len(await chat.messages("t")) == 2
    assert not (tmp_path / "data").exists()


@pytest.mark.requirement("HIS-02")
async def test_postgresql_is_one_url_and_one_migrate_away(launch: Launch, empty_postgres_url: str) -> None:
    refused = await launch("serve", DATABASE_URL=empty_postgres_url)
    assert await refused.ended() != 0
    assert "python -m app migrate" in refused.output
    migrating = await launch("migrate", DATABASE_URL=empty_postgres_url)
    assert await migrating.ended() == 0, migrating.output
    server = await launch(DATABASE_URL=empty_postgres_url)
    async with talk_to(server) as chat:
        await chat.run("t", "what is 6*7?")
        before = await history_bytes(chat, "t")
        second = await launch("serve", DATABASE_URL=empty_postgres_url)
        assert await second.ended() != 0
        await server.kill()
    again = await launch(DATABASE_URL=empty_postgres_url)
    async with talk_to(again) as chat:
        assert await history_bytes(chat, "t") == before
