"""A thread that goes on from where another stands."""

import asyncio
from typing import Any

import pytest

from tests.services.chat import Chat, OpenChat, user


async def fork(chat: Chat, **asked: Any) -> Any:
    return await chat.client.post("/threads/t/fork", json=asked)


async def two_turns(chat: Chat) -> None:
    group = {"conversation": {"groupId": "g", "parentThreadId": "p", "hidden": True}}
    await chat.run("t", user("first", "u1"), run="r1", forwardedProps=group)
    await chat.run("t", user("second", "u2"), run="r2")


def said(chat: Chat) -> list[str]:
    return [message.join_text() for message in chat.model.prompts[-1].messages]


@pytest.mark.requirement("HIS-05", "HIS-08")
async def test_a_fork_shares_the_past_and_has_a_future_of_its_own(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three", "four")
    await two_turns(chat)
    answer = await fork(chat, threadId="f")
    assert (answer.status_code, answer.headers["location"]) == (201, "/threads/f")
    shape = answer.json()
    source = (await chat.client.get("/threads/t")).json()
    assert {key: shape[key] for key in ("groupId", "parentThreadId", "title", "agent")} == {
        "groupId": "g",
        "parentThreadId": "p",
        "title": "first",
        "agent": "assistant",
    }
    assert (shape["hidden"], shape["runCount"], shape["messageCount"]) == (False, 2, 4)
    assert await chat.messages("f") == await chat.messages("t")
    await chat.run("f", user("third", "u3"))
    assert said(chat) == ["first", "one", "second", "two", "third"]
    assert (await chat.client.get("/threads/t")).json() == source
    await chat.run("t", user("fourth", "u4"))
    assert said(chat) == ["first", "one", "second", "two", "fourth"]


@pytest.mark.requirement("HIS-05", "HIS-08")
async def test_a_fork_may_begin_at_an_earlier_run_and_have_its_own_attributes(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three")
    await two_turns(chat)
    answer = await fork(chat, runId="r1", title="Other", groupId="", parentThreadId="t", hidden=True)
    shape = answer.json()
    assert {key: shape[key] for key in ("groupId", "parentThreadId", "title", "hidden", "messageCount")} == {
        "groupId": "default",
        "parentThreadId": "t",
        "title": "Other",
        "hidden": True,
        "messageCount": 2,
    }
    await chat.run(shape["threadId"], "again")
    assert said(chat) == ["first", "one", "again"]


@pytest.mark.requirement("AGUI-07")
async def test_an_edit_in_a_fork_branches_from_what_it_shares(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three")
    await two_turns(chat)
    await fork(chat, threadId="f")
    history = await chat.messages("f")
    answer = await chat.post_run(chat.body("f", *history[:2], user("edited", "u3")))
    assert answer.headers["verbatim-previous-run"] == "r1"
    assert said(chat) == ["first", "one", "edited"]
    assert len(await chat.messages("t")) == 4


async def test_what_cannot_be_forked_is_refused(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat("one", "two", [gate, "three"])
    await two_turns(chat)
    await chat.client.post("/threads", json={"threadId": "other"})
    for asked, status, field in [
        ({"runId": "r9"}, 404, "runId"),
        ({"threadId": "other"}, 409, "threadId"),
        ({"threadId": "a/b"}, 422, "threadId"),
        ({"more": 1}, 422, "more"),
    ]:
        answer = await fork(chat, **asked)
        assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert (await chat.client.post("/threads/nowhere/fork", json={})).status_code == 404
    async with chat.streaming(chat.body("t", "third", run="r3")) as stream:
        await stream.until("RUN_STARTED")
        assert (await fork(chat)).json()["code"] == "thread_busy"
        assert (await fork(chat, threadId="early", runId="r2")).status_code == 201
        gate.set()
        await stream.rest()
