"""Threads over HTTP: list, make, read, change, delete."""

import asyncio
import re

import pytest

from tests.services.chat import OpenChat, text_of

MEMBERS = {
    "threadId",
    "groupId",
    "parentThreadId",
    "hidden",
    "title",
    "agent",
    "runCount",
    "messageCount",
    "lastRunStatus",
    "archivedAt",
    "createdAt",
    "updatedAt",
}
THREE_DIGITS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.requirement("HIS-17", "MSG-13")
async def test_a_thread_tells_what_it_is(open_chat: OpenChat) -> None:
    chat = await open_chat("hi there", "again")
    await chat.run("t", "Plan a trip\nto the sea")
    await chat.run("t", "more")
    [thread] = await chat.threads()
    assert set(thread) == MEMBERS
    assert thread["threadId"] == "t"
    assert thread["title"] == "Plan a trip"
    assert (thread["runCount"], thread["messageCount"]) == (2, 4)
    assert (thread["groupId"], thread["hidden"], thread["agent"]) == ("default", False, "assistant")
    assert thread["lastRunStatus"] == "completed"
    assert THREE_DIGITS.fullmatch(thread["createdAt"])
    assert THREE_DIGITS.fullmatch(thread["updatedAt"])
    assert (await chat.client.get("/threads/t")).json() == thread


@pytest.mark.requirement("AGUI-14")
@pytest.mark.parametrize("flag", [None, "false", "True", "1", "yes", "TRUE", ""])
async def test_hidden_threads_are_listed_for_true_alone(open_chat: OpenChat, flag: str | None) -> None:
    chat = await open_chat("a", "b")
    await chat.run("shown", "hello")
    hidden = {"conversation": {"hidden": True, "parentThreadId": "shown", "groupId": "shown"}}
    await chat.run("inner", "work", forwardedProps=hidden)
    query = {} if flag is None else {"include_hidden": flag}
    assert [thread["threadId"] for thread in await chat.threads(**query)] == ["shown"]
    both = await chat.threads(include_hidden="true")
    assert [(t["threadId"], t["hidden"], t["parentThreadId"], t["groupId"]) for t in both] == [
        ("inner", True, "shown", "shown"),
        ("shown", False, None, "default"),
    ]
    assert (await chat.client.get("/threads/inner")).status_code == 200
    assert [role for role, _ in await chat.texts("inner")] == ["user", "assistant"]


@pytest.mark.requirement("HIS-17")
async def test_pages_walk_every_thread_once_newest_activity_first(open_chat: OpenChat) -> None:
    chat = await open_chat("again")
    for number in range(7):
        made = await chat.client.post("/threads", json={"threadId": f"t{number}", "groupId": "g"})
        assert made.status_code == 201
    await chat.run("t0", "wake up")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "3", "group_id": "g", **({"cursor": cursor} if cursor else {})}
        page = (await chat.client.get("/threads", params=query)).json()
        seen += [thread["threadId"] for thread in page["threads"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen[0] == "t0"
    assert sorted(seen) == [f"t{number}" for number in range(7)]


async def test_filters_narrow_the_list(open_chat: OpenChat) -> None:
    chat = await open_chat()
    for id, more in {
        "a": {"groupId": "g"},
        "b": {"parentThreadId": "a"},
        "c": {"title": "Kept"},
    }.items():
        assert (await chat.client.post("/threads", json={"threadId": id, **more})).status_code == 201
    await chat.client.patch("/threads/c", json={"archived": True})

    async def ids(**query: str) -> list[str]:
        return sorted(thread["threadId"] for thread in await chat.threads(**query))

    assert await ids() == ["a", "b", "c"]
    assert await ids(group_id="g") == ["a"]
    assert await ids(group_id="default") == ["b", "c"]
    assert await ids(parent_thread_id="a") == ["b"]
    assert await ids(agent="assistant") == ["a", "b", "c"]
    assert await ids(agent="nobody") == []
    assert await ids(archived="true") == ["c"]
    assert await ids(archived="false") == ["a", "b"]


async def test_a_thread_is_made_once(open_chat: OpenChat) -> None:
    chat = await open_chat()
    first = await chat.client.post("/threads", json={"threadId": "t", "title": "  Mine  ", "hidden": True})
    assert (first.status_code, first.json()["title"], first.json()["hidden"]) == (201, "Mine", True)
    assert first.headers["location"] == "/threads/t"
    again = await chat.client.post("/threads", json={"threadId": "t"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    unnamed = await chat.client.post("/threads", json={})
    assert unnamed.json()["threadId"].startswith("thread_")


async def test_attributes_are_set_when_the_thread_is_made_and_kept(open_chat: OpenChat) -> None:
    chat = await open_chat("a", "b")
    await chat.run("t", "one", forwardedProps={"conversation": {"groupId": "g", "hidden": True}})
    await chat.run("t", "two", forwardedProps={"conversation": {"groupId": "other", "hidden": False}})
    thread = (await chat.client.get("/threads/t")).json()
    assert (thread["groupId"], thread["hidden"]) == ("g", True)


async def test_renaming_and_archiving_change_nothing_else(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    await chat.run("t", "hello")
    before = (await chat.client.get("/threads/t")).json()
    renamed = (await chat.client.patch("/threads/t", json={"title": "New name"})).json()
    assert renamed == {**before, "title": "New name"}
    archived = (await chat.client.patch("/threads/t", json={"archived": True})).json()
    assert archived["archivedAt"] is not None
    back = (await chat.client.patch("/threads/t", json={"archived": False})).json()
    assert back == renamed


async def test_deletion_takes_the_thread_and_its_hidden_children(open_chat: OpenChat) -> None:
    chat = await open_chat("a", "b")
    await chat.run("t", "hello")
    await chat.run("child", "x", forwardedProps={"conversation": {"hidden": True, "parentThreadId": "t"}})
    assert (await chat.client.delete("/threads/t")).status_code == 204
    assert await chat.threads(include_hidden="true") == []
    assert (await chat.client.get("/threads/t/messages")).status_code == 404
    assert (await chat.client.delete("/threads/t")).status_code == 404


async def test_deleting_a_busy_thread_stops_it_first(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat(["so far", gate, " never"])
    async with chat.streaming(chat.body("t", "go")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        assert (await chat.client.delete("/threads/t")).status_code == 204
        rest = await stream.until("RUN_FINISHED")
    assert text_of(rest) == ""
    assert chat.model.closed == 1
    assert (await chat.client.get("/threads/t")).status_code == 404


UNKNOWN_THREAD_ROUTES = [
    ("GET", "/threads/no"),
    ("PATCH", "/threads/no"),
    ("DELETE", "/threads/no"),
    ("GET", "/threads/no/messages"),
    ("GET", "/threads/no/state"),
    ("GET", "/threads/no/transcript"),
    ("GET", "/threads/no/runs"),
    ("GET", "/threads/no/stream"),
    ("GET", "/threads/no/runs/r"),
    ("GET", "/threads/no/runs/r/events"),
    ("POST", "/threads/no/runs/r/stop"),
]


@pytest.mark.parametrize(("method", "path"), UNKNOWN_THREAD_ROUTES)
async def test_an_unknown_thread_is_404_on_every_route(open_chat: OpenChat, method: str, path: str) -> None:
    chat = await open_chat()
    json = {"title": "x"} if method == "PATCH" else None
    answer = await chat.client.request(method, path, json=json)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 404
    assert await chat.threads(include_hidden="true") == []


@pytest.mark.requirement("AGUI-16")
@pytest.mark.parametrize(
    ("method", "path", "json", "field"),
    [
        ("GET", "/threads?limit=0", None, "limit"),
        ("GET", "/threads?limit=x", None, "limit"),
        ("GET", "/threads?limit=201", None, "limit"),
        ("GET", "/threads?cursor=nonsense", None, "cursor"),
        ("GET", "/threads?archived=maybe", None, "archived"),
        ("POST", "/threads", {"threadId": ""}, "threadId"),
        ("POST", "/threads", {"threadId": "x" * 201}, "threadId"),
        ("POST", "/threads", {"threadId": "a/b"}, "threadId"),
        ("POST", "/threads", {"threadId": 7}, "threadId"),
        ("POST", "/threads", {"title": " "}, "title"),
        ("POST", "/threads", {"titel": "x"}, "titel"),
        ("POST", "/threads", {"agent": "nobody"}, "agent"),
        ("POST", "/threads", {"hidden": "yes"}, "hidden"),
        ("POST", "/threads", [], "body"),
        ("POST", "/threads", None, "body"),
        ("PATCH", "/threads/t", {"title": "x" * 201}, "title"),
        ("PATCH", "/threads/t", {"archived": 1}, "archived"),
        ("GET", "/threads/t/messages?limit=0", None, "limit"),
        ("GET", "/threads/t/messages?before=x", None, "before"),
        ("GET", "/threads/t/messages?run_id=nope", None, "run_id"),
        ("GET", "/threads/t/transcript?before_run_id=nope", None, "before_run_id"),
        ("GET", "/threads/t/transcript?run_id=nope", None, "run_id"),
        ("GET", "/threads/%00", None, "thread_id"),
    ],
)
async def test_a_bad_value_gets_a_problem_document_that_names_it(
    open_chat: OpenChat, method: str, path: str, json: object, field: str
) -> None:
    chat = await open_chat()
    await chat.client.post("/threads", json={"threadId": "t"})
    answer = await chat.client.request(method, path, json=json)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field
    assert len(await chat.threads()) == 1
