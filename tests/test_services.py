"""What the tests stand on holds by itself."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.services.cache import cached
from tests.services.server import NotStarted, Serve, ServerProcess, environment
from tests.services.sse import all_frames, blocks, frames, parse_frame

pytest_plugins = ["pytester"]


def test_a_folder_is_built_once_for_all_who_ask_at_the_same_time(tmp_path: Path):
    built: list[Path] = []
    together = threading.Barrier(4)

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "content").write_text("whole")

    def ask() -> None:
        together.wait(10)
        assert (cached("thing", b"key", build, tmp_path) / "content").read_text() == "whole"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(built) == 1
    assert cached("thing", b"another key", build, tmp_path) != cached("thing", b"key", build, tmp_path)


def test_a_build_that_fails_leaves_nothing_to_be_taken_for_whole(tmp_path: Path):
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError):
        cached("thing", b"key", fail, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert cached("thing", b"key", lambda folder: None, tmp_path).is_dir()


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [([], "test_work"), (["-m", "not slow"], "test_work"), (["-m", "benchmark"], "test_speed")],
)
def test_benchmarks_run_only_when_they_are_asked_for(
    pytester: pytest.Pytester, arguments: list[str], ran: str
):
    pytester.makeini(
        "[pytest]\nmarkers =\n  benchmark\n  slow\nasyncio_default_fixture_loop_scope = function"
    )
    pytester.makepyfile(
        "import pytest\ndef test_work(): ...\n@pytest.mark.benchmark\ndef test_speed(): ...\n"
    )
    result = pytester.runpytest_inprocess("-p", "tests.services.on_purpose", "-v", *arguments)
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines([f"*::{ran} PASSED*"])


def _streaming(*pieces: bytes) -> Starlette:
    async def stream(_: Request) -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece
                await asyncio.sleep(0)

        return StreamingResponse(body(), media_type="text/event-stream")

    return Starlette(routes=[Route("/", stream)])


async def test_a_served_app_streams_over_a_real_socket(serve: Serve):
    first, second = 'id: 1.1.1\ndata: {"type":"A","text":"\u2028"}', 'id: 1.1.2\ndata: {"type":"B"}'
    text = f"{first}\n\n: alive\n\n{second}\n\n".encode()
    base = await serve(_streaming(text[:20], text[20:41], text[41:]))
    async with httpx.AsyncClient(trust_env=False) as client:
        async with client.stream("GET", base) as response:
            told = await all_frames(response)
        async with client.stream("GET", base) as response:
            comments = [block.comment async for block in blocks(response)]
    assert [(frame.id, frame.type) for frame in told] == [("1.1.1", "A"), ("1.1.2", "B")]
    assert told[0].data["text"] == "\u2028"
    assert comments == [None, "alive", None]
    assert b"".join(frame.raw for frame in told) == text.replace(b": alive\n\n", b"")


async def test_a_follower_may_leave_before_the_end(serve: Serve):
    base = await serve(_streaming(*[b'data: {"type":"A"}\n\n'] * 5))
    async with httpx.AsyncClient(trust_env=False) as client, client.stream("GET", base) as response:
        async for frame in frames(response):
            assert frame.type == "A"
            break


@pytest.mark.parametrize(
    "block", [b"id: 1\r\ndata: {}", b"data: {}\ndata: {}", b"id: 1", b"data: {}\n: x\ndata: 1"]
)
def test_a_block_that_is_not_as_promised_is_refused(block: bytes):
    with pytest.raises(AssertionError):
        parse_frame(block)


async def test_a_stream_that_is_cut_inside_a_frame_is_refused(serve: Serve):
    base = await serve(_streaming(b'data: {"type":"A"}\n\ndata: {'))
    async with httpx.AsyncClient(trust_env=False) as client, client.stream("GET", base) as response:
        with pytest.raises(AssertionError, match="inside a frame"):
            await all_frames(response)


async def test_an_app_that_does_not_start_is_told_and_does_not_take_the_test_along(serve: Serve):
    async def app(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("no database")

    with pytest.raises(NotStarted):
        await serve(app)


def test_a_started_process_gets_no_setting_but_those_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERBATIM_MODEL", "mine")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    env = environment({"PORT": "1", "OPENAI_BASE_URL": "http://127.0.0.1:9"})
    ours = {name: value for name, value in env.items() if name.startswith(("VERBATIM_", "OPENAI_"))}
    assert ours == {"VERBATIM_PORT": "1", "OPENAI_BASE_URL": "http://127.0.0.1:9"}


async def test_a_process_that_ends_at_once_tells_what_it_wrote(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("refused: wrong port")
    process = await asyncio.create_subprocess_exec("false")
    server = ServerProcess("http://127.0.0.1:9", process, log)
    with pytest.raises(NotStarted, match="wrong port"):
        await server.ready()
    await server.kill()


async def test_a_killed_process_tells_the_signal(tmp_path: Path):
    process = await asyncio.create_subprocess_exec("sleep", "60")
    server = ServerProcess("http://127.0.0.1:9", process, tmp_path / "log")
    server.send(signal.SIGTERM)
    assert await server.ended() == -signal.SIGTERM
    await server.kill()
