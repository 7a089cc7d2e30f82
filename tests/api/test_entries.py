"""Records of the application among the messages."""

import asyncio
from typing import Any

import pytest

from tests.services.chat import Chat, OpenChat, user


async def post(chat: Chat, *entries: dict[str, Any], thread: str = "t") -> Any:
    return await chat.client.post(f"/threads/{thread}/entries", json={"entries": list(entries)})


@pytest.mark.requirement("AGT-11")
async def test_records_are_stored_in_their_place_and_no_model_reads_them(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    await chat.run("t", user("first", "u1"), run="r1")
    posted = await post(chat, {"name": "note", "value": {"a": 1}, "id": "e1"}, {"name": "n", "value": None})
    assert posted.status_code == 201
    document = posted.json()
    assert document["runId"] == "r1"
    assert document["entries"][0] == {"id": "e1", "stored": True}
    await chat.run("t", user("second", "u2"))
    messages = await chat.messages("t")
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "activity",
        "activity",
        "user",
        "assistant",
    ]
    assert (messages[2]["id"], messages[2]["activityType"], messages[2]["content"]) == (
        "e1",
        "note",
        {"a": 1},
    )
    assert messages[3]["id"] == document["entries"][1]["id"]
    assert [m.join_text() for m in chat.model.prompts[-1].messages] == ["first", "one", "second"]
    (thread,) = await chat.threads()
    assert thread["messageCount"] == 4


@pytest.mark.requirement("AGT-11", "AGT-12")
async def test_those_who_follow_a_live_run_get_records_at_once(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat([gate, "one"])
    async with chat.streaming(chat.body("t", "go", run="r1")) as stream:
        await stream.until("STEP_STARTED")
        posted = await post(
            chat,
            {"name": "note", "value": {"a": 1}, "id": "e1"},
            {"name": "ping", "value": 7, "transient": True, "id": "e2"},
        )
        assert posted.json() == {
            "runId": "r1",
            "entries": [{"id": "e1", "stored": True}, {"id": "e2", "stored": False}],
        }
        activity, custom = (await stream.until("CUSTOM"))[-2:]
        assert (activity.type, activity.data["messageId"]) == ("ACTIVITY_SNAPSHOT", "e1")
        assert (custom.data["name"], custom.data["value"]) == ("ping", 7)
        gate.set()
        await stream.rest()
    assert [message["role"] for message in await chat.messages("t")] == ["user", "activity", "assistant"]


@pytest.mark.requirement("AGT-11")
async def test_a_thread_without_runs_takes_records(open_chat: OpenChat) -> None:
    chat = await open_chat("one")
    await chat.client.post("/threads", json={"threadId": "t"})
    alone = await post(chat, {"name": "ping", "value": 1, "transient": True})
    assert (alone.status_code, alone.json()["runId"]) == (201, None)
    posted = await post(chat, {"name": "note", "value": {"a": 1}})
    assert posted.json()["runId"] == (await chat.runs("t"))[0]["runId"]
    await chat.run("t", "hello")
    assert [message["role"] for message in await chat.messages("t")] == ["activity", "user", "assistant"]


@pytest.mark.requirement("AGT-11")
async def test_a_turn_may_bring_records_beside_its_text(open_chat: OpenChat) -> None:
    chat = await open_chat("one")
    body = {"text": "hello", "entries": [{"name": "note", "value": {"a": 1}, "id": "e1"}]}
    answer = await chat.client.post("/threads/t/runs", json=body, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 200
    messages = await chat.messages("t")
    assert [message["role"] for message in messages] == ["activity", "user", "assistant"]
    assert messages[0]["id"] == "e1"
    assert [m.join_text() for m in chat.model.prompts[-1].messages] == ["hello"]


@pytest.mark.requirement("AGUI-16", "AGT-11")
@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ([], "entries"),
        ([{"value": 1}], "entries/0/name"),
        ([{"name": " ", "value": 1}], "entries/0/name"),
        ([{"name": "n"}], "entries/0/value"),
        ([{"name": "n", "value": 1, "id": "a/b"}], "entries/0/id"),
        ([{"name": "n", "value": 1}, {"name": "n", "value": 1, "id": "m:output:0"}], "entries/1/id"),
        ([{"name": "n", "value": 1, "id": "e"}] * 2, "entries/1/id"),
        ([{"name": "n", "value": 1, "transient": "yes"}], "entries/0/transient"),
        ([{"name": "n", "value": 1, "more": 1}], "entries/0/more"),
        ([{"name": "n", "value": 1}] * 101, "entries"),
    ],
)
async def test_a_record_that_cannot_be_taken_is_refused_by_its_place(
    open_chat: OpenChat, entries: list[Any], field: str
) -> None:
    chat = await open_chat("one")
    await chat.run("t", "hello")
    answer = await post(chat, *entries)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert len(await chat.messages("t")) == 2


async def test_records_need_a_thread_and_ids_of_their_own(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    assert (await post(chat, {"name": "n", "value": 1})).status_code == 404
    await chat.run("t", user("hello", "u1"))
    assert (await post(chat, {"name": "n", "value": 1, "id": "e1"})).status_code == 201
    await chat.run("t", user("again", "u2"))
    for id in ("u1", "u2", "e1"):
        refused = await post(chat, {"name": "n", "value": 1, "id": "e2"}, {"name": "n", "value": 1, "id": id})
        assert (refused.status_code, refused.json()["field"]) == (409, "entries/1/id")
        body = {"text": "and?", "entries": [{"name": "n", "value": 1, "id": id}]}
        refused = await chat.client.post("/threads/t/runs", json=body)
        assert (refused.status_code, refused.json()["field"]) == (409, "entries/0/id")
    assert len(chat.model.prompts) == 2
