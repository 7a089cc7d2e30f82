"""What every request passes first."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.services.chat import OpenChat


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.0.0.1:8000", "localhost:1"])
async def test_loopback_host_names_are_answered(open_chat: OpenChat, host: str) -> None:
    chat = await open_chat()
    assert (await chat.client.get("/threads", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "evil.example:8000", ""]
)
async def test_a_foreign_host_name_is_refused(open_chat: OpenChat, host: str) -> None:
    chat = await open_chat()
    answer = await chat.client.get("/threads", headers={"Host": host})
    assert answer.status_code == 403
    assert answer.json()["field"] == "Host"


async def test_host_names_are_free_where_that_is_wished_and_origins_are_not(open_chat: OpenChat) -> None:
    chat = await open_chat(allow_unauthenticated=True)
    assert (await chat.client.get("/threads", headers={"Host": "chat.example"})).status_code == 200
    foreign = {"Host": "chat.example", "Origin": "https://evil.example"}
    assert (await chat.client.get("/threads", headers=foreign)).status_code == 403


ODD_ORIGINS = ["https://evil.example", "null", "http://127.0.0.1:1", "file://", "http://[", "http://", ""]


@pytest.mark.parametrize("origin", ODD_ORIGINS)
async def test_a_foreign_origin_is_refused_and_nothing_is_stored(open_chat: OpenChat, origin: str) -> None:
    chat = await open_chat("hi")
    answer = await chat.client.post(
        "/agents/assistant/run", json=chat.body("t", "hello"), headers={"Origin": origin}
    )
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert await chat.threads() == []


async def test_the_own_page_and_configured_origins_may_use_the_server(open_chat: OpenChat) -> None:
    chat = await open_chat(cors_origins=("https://chat.example",))
    own = await chat.client.get("/threads", headers={"Origin": chat.base_url})
    other = await chat.client.get("/threads", headers={"Origin": "https://chat.example"})
    assert (own.status_code, other.status_code) == (200, 200)
    assert other.headers["access-control-allow-origin"] == "https://chat.example"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
async def test_a_body_that_is_not_declared_as_json_is_refused(open_chat: OpenChat, kind: str | None) -> None:
    chat = await open_chat("hi")
    headers = {"Content-Type": kind} if kind else {}
    request = chat.client.build_request("POST", "/threads", content=b'{"threadId": "t"}', headers=headers)
    answer = await chat.client.send(request)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert await chat.threads() == []


async def test_a_stop_with_an_empty_body_needs_no_media_type(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    await chat.run("t", "hello", run="r")
    assert (await chat.client.post("/threads/t/runs/r/stop")).status_code == 200
    empty = await chat.client.post("/threads/t/runs/r/stop", headers={"Content-Type": "application/json"})
    assert empty.status_code == 200


async def test_a_body_beyond_the_limit_is_refused_before_it_is_read(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    body = chat.body("t", "x" * (20 * 1024 * 1024))
    assert (await chat.post_run(body)).status_code == 413

    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(20_000):
            yield b" " * 1024

    answer = await chat.client.post(
        "/threads", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert await chat.threads() == []


async def test_an_encoded_slash_reaches_no_other_route(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    await chat.run("t", "hello")
    answer = await chat.client.get(httpx.URL(f"{chat.base_url}/threads/t%2Fmessages"))
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("/threads?group_id=%00", "group_id"),
        ("/threads?agent=a%00b", "agent"),
        ("/threads/t/messages?run_id=%00", "run_id"),
        ("/threads/t/transcript?before_run_id=%00", "before_run_id"),
    ],
)
async def test_nul_in_a_query_is_refused_by_its_name(open_chat: OpenChat, query: str, field: str) -> None:
    chat = await open_chat()
    answer = await chat.client.get(httpx.URL(chat.base_url + query))
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("PUT", "/threads", 405, "GET, POST"),
        ("PUT", "/threads/t", 405, "GET, PATCH, DELETE"),
        ("GET", "/agents/assistant/run", 405, "POST"),
        ("HEAD", "/threads", 405, "GET, POST"),
        ("POST", "/nope", 404, None),
        ("GET", "/nope.html", 404, None),
        ("POST", "/", 405, "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_which_are_right(
    open_chat: OpenChat, method: str, path: str, status: int, allow: str | None
) -> None:
    chat = await open_chat()
    answer = await chat.client.request(method, path)
    assert (answer.status_code, answer.headers.get("allow")) == (status, allow)
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_page_and_its_files_are_served_under_a_strict_policy(open_chat: OpenChat) -> None:
    chat = await open_chat()
    for path, kind in {"/": "text/html", "/main.js": "text/javascript", "/app.css": "text/css"}.items():
        answer = await chat.client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
