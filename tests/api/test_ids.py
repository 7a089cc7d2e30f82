"""Ids may hold any letter there is; what they hold never breaks an answer."""

from urllib.parse import quote

import pytest

from tests.services.chat import OpenChat, text_of

ODD = [
    "日本",
    "a b%",
    "%41",
    "😀",
    "ü" * 200,
    "a;b=c&d+e",
    "'\"<script>",
    "~",
    "...",
    "a:b@c",
    "ﷺ",
    "\U000e0041x",
]


@pytest.mark.requirement("AGUI-01", "HIS-04")
@pytest.mark.parametrize("id", ODD)
async def test_any_sound_id_runs_reads_stops_and_deletes(open_chat: OpenChat, id: str) -> None:
    chat = await open_chat("one", "two")
    events = await chat.run(id, "hello", run=id)
    assert (events[-1].type, events[-1].data["threadId"], events[-1].data["runId"]) == (
        "RUN_FINISHED",
        id,
        id,
    )
    path = f"/threads/{quote(id, safe='')}"
    assert (await chat.client.get(path)).json()["threadId"] == id
    assert (await chat.client.get(f"{path}/messages")).json()["threadId"] == id
    started = await chat.client.post(f"{path}/runs", json={"text": "more"})
    assert started.status_code == 202
    assert (await chat.client.get(started.headers["location"])).json()["threadId"] == id
    async with chat.following(started.headers["content-location"]) as stream:
        assert text_of(await stream.rest()) == "two"
    assert (await chat.client.post(f"{path}/runs/{quote(id, safe='')}/stop")).json()["status"] == "completed"
    assert (await chat.client.delete(path)).status_code == 204


@pytest.mark.parametrize("id", ODD)
async def test_any_sound_id_makes_a_thread_whose_place_is_told(open_chat: OpenChat, id: str) -> None:
    chat = await open_chat()
    made = await chat.client.post("/threads", json={"threadId": id, "groupId": id, "title": id})
    assert made.status_code == 201
    assert (await chat.client.get(made.headers["location"])).json() == made.json()
    [listed] = await chat.threads(group_id=id)
    assert listed["threadId"] == id
