"""Edit, regenerate and continue from an earlier run, over HTTP."""

import asyncio
from typing import Any

import pytest

from app.agent.models.base import CallPiece
from tests.services.chat import Chat, OpenChat, text_of, user


async def two_turns(chat: Chat) -> list[dict[str, Any]]:
    """Runs `r1` and `r2`, whose messages it gives: first, one, second, two."""
    await chat.run("t", user("first", "u1"), run="r1")
    await chat.run("t", user("second", "u2"), run="r2")
    return await chat.messages("t")


def said(chat: Chat) -> list[str]:
    """The texts of the last prompt."""
    return [message.join_text() for message in chat.model.prompts[-1].messages]


async def previous(chat: Chat, run: str) -> str | None:
    return (await chat.client.get(f"/threads/t/runs/{run}")).json()["previousRunId"]


@pytest.mark.requirement("AGUI-07", "HIS-05")
async def test_an_edited_message_begins_a_branch_and_the_other_stays(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three")
    history = await two_turns(chat)
    answer = await chat.post_run(chat.body("t", *history[:2], user("edited", "u3"), run="r3"))
    assert answer.headers["verbatim-previous-run"] == "r1"
    assert said(chat) == ["first", "one", "edited"]
    assert [content for _, content in await chat.texts("t")] == ["first", "one", "edited", "three"]
    other = await chat.messages("t", run_id="r2")
    assert [message["content"] for message in other] == ["first", "one", "second", "two"]
    assert [run["runId"] for run in await chat.runs("t")] == ["r1", "r2", "r3"]
    (thread,) = await chat.threads()
    assert (thread["runCount"], thread["messageCount"]) == (2, 4)


@pytest.mark.requirement("AGUI-07")
async def test_a_list_that_ends_in_an_answered_question_gets_another_answer(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "two again", "one again")
    history = await two_turns(chat)
    answer = await chat.post_run(chat.body("t", *history[:3], run="r3"))
    assert answer.headers["verbatim-previous-run"] == "r1"
    assert said(chat) == ["first", "one", "second"]
    now = await chat.messages("t")
    assert [message["content"] for message in now] == ["first", "one", "second", "two again"]
    assert now[2] == history[2]
    answer = await chat.post_run(chat.body("t", *history[:1], run="r4"))
    assert "verbatim-previous-run" not in answer.headers
    assert said(chat) == ["first"]
    assert await chat.texts("t") == [("user", "first"), ("assistant", "one again")]
    assert await previous(chat, "r4") is None


@pytest.mark.requirement("AGUI-07", "AGUI-05")
async def test_a_client_that_asks_again_holds_what_is_stored(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "again")
    await chat.run("t", user("first", "u1"))
    events = await chat.run("t", user("first", "u1"))
    assert text_of(events) == "again"
    assert [message["id"] for message in events[0].data["input"]["messages"]] == ["u1"]


@pytest.mark.requirement("AGUI-07")
async def test_a_message_within_a_run_is_edited_by_cutting_the_run(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three")
    await chat.run("t", user("first", "u1"), user("more", "u2"), run="r1")
    answer = await chat.post_run(chat.body("t", user("first", "u1"), user("less", "u3"), run="r2"))
    assert answer.headers["verbatim-previous-run"] == "r1"
    assert said(chat) == ["first", "less"]
    assert [content for _, content in await chat.texts("t")] == ["first", "less", "two"]
    assert (await chat.runs("t"))[1]["branchAfterEntry"] == "u1"
    await chat.run("t", user("go on", "u4"))
    assert said(chat) == ["first", "less", "two", "go on"]


@pytest.mark.requirement("AGUI-07")
async def test_a_stale_tab_goes_on_from_what_it_shows_unless_it_asks_for_the_head(
    open_chat: OpenChat,
) -> None:
    chat = await open_chat("one", "two", "three", "four")
    history = await two_turns(chat)
    stale = [*history[:2], user("stale", "u3")]
    head = {"conversation": {"previousRunId": "head"}}
    answer = await chat.post_run(chat.body("t", *stale, run="r3", forwardedProps=head))
    assert answer.headers["verbatim-previous-run"] == "r2"
    assert said(chat) == ["first", "one", "second", "two", "stale"]
    answer = await chat.post_run(chat.body("t", *history[:2], user("too", "u4"), run="r4"))
    assert answer.headers["verbatim-previous-run"] == "r1"
    assert said(chat) == ["first", "one", "too"]


@pytest.mark.requirement("HIS-05", "AGUI-10")
async def test_a_run_is_named_to_go_on_from(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three", "four", "five")
    await two_turns(chat)
    await chat.run("t", "third", run="r3", forwardedProps={"conversation": {"previousRunId": "r1"}})
    assert said(chat) == ["first", "one", "third"]
    await chat.run("t", "fourth", run="r4", forwardedProps={"conversation": {"previousRunId": "start"}})
    assert said(chat) == ["fourth"]
    started = {"text": "fifth", "previousRunId": "r2", "runId": "r5"}
    answer = await chat.client.post("/threads/t/runs", json=started, headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["verbatim-previous-run"]) == (200, "r2")
    assert said(chat) == ["first", "one", "second", "two", "fifth"]


@pytest.mark.requirement("HIS-05", "AGUI-10")
async def test_a_run_that_is_not_there_is_no_place_to_go_on_from(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    await two_turns(chat)
    await chat.client.post("/threads", json={"threadId": "other"})
    for thread, run in (("t", "r9"), ("other", "r1"), ("new", "r1")):
        wish = {"conversation": {"previousRunId": run}}
        answer = await chat.post_run(chat.body(thread, "hi", forwardedProps=wish))
        assert (answer.status_code, answer.json()["field"]) == (
            404,
            "forwardedProps/conversation/previousRunId",
        )
        answer = await chat.client.post(f"/threads/{thread}/runs", json={"text": "hi", "previousRunId": run})
        assert (answer.status_code, answer.json()["field"]) == (404, "previousRunId")
    assert len(chat.model.prompts) == 2


async def test_ids_of_any_letters_come_back_in_the_header(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    await chat.run("t", "first", run="läuft 😀")
    answer = await chat.post_run(chat.body("t", "second"))
    assert answer.headers["verbatim-previous-run"] == "l%C3%A4uft%20%F0%9F%98%80"


@pytest.mark.requirement("AGUI-07")
async def test_a_filtered_list_that_holds_something_of_the_heads_run_appends(open_chat: OpenChat) -> None:
    chat = await open_chat(
        "one", ["Let me. ", CallPiece("0", "{}", name="look", call_id="c")], "two", "three", tools=[look]
    )
    history = await two_turns(chat)
    kept = [message for message in history if message["role"] == "user"]
    answer = await chat.post_run(chat.body("t", *kept, user("third", "u3")))
    assert answer.headers["verbatim-previous-run"] == "r2"
    assert said(chat) == ["first", "one", "second", "Let me. ", "seen", "two", "third"]


def look() -> str:
    """Looks."""
    return "seen"


@pytest.mark.requirement("AGUI-07")
@pytest.mark.parametrize("legacy", [True, False])
async def test_a_list_with_nothing_new_is_told_how_the_thread_stands(
    open_chat: OpenChat, legacy: bool
) -> None:
    chat = await open_chat("one")
    await chat.run("t", user("first", "u1"), state={"n": 1})
    history = await chat.messages("t")
    version = {"protocolVersion": None} if legacy else {}
    for messages in (
        history,
        history[1:],
        [history[0], {"id": "x", "role": "assistant", "content": "?"}],
        [],
    ):
        events = await chat.run("t", *messages, run="asked", **version)
        assert [event.type for event in events] == [
            "RUN_STARTED",
            "STATE_SNAPSHOT",
            "MESSAGES_SNAPSHOT",
            "RUN_FINISHED",
        ]
        assert [event.data.get("runId") for event in (events[0], events[-1])] == ["asked", "asked"]
        assert events[1].data["snapshot"] == {"n": 1}
        assert events[2].data["messages"] == history
    assert len(chat.model.prompts) == len(await chat.runs("t")) == 1


async def test_a_thread_that_was_never_spoken_on_has_nothing_to_tell(open_chat: OpenChat) -> None:
    chat = await open_chat()
    for messages in ([], [{"id": "x", "role": "assistant", "content": "?"}]):
        answer = await chat.post_run(chat.body("t", *messages))
        assert (answer.status_code, answer.json()["field"]) == (422, "messages")
    assert await chat.threads() == []


async def test_a_used_run_id_is_not_told_how_the_thread_stands(open_chat: OpenChat) -> None:
    chat = await open_chat("one")
    await chat.run("t", user("first", "u1"), run="r1")
    history = await chat.messages("t")
    answer = await chat.post_run(
        chat.body("t", *history, run="r1", context=[{"description": "d", "value": "v"}])
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "run_exists")


async def test_a_busy_thread_is_not_told_how_it_stands(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat("one", [gate, "two"])
    await chat.run("t", user("first", "u1"))
    history = await chat.messages("t")
    async with chat.streaming(chat.body("t", user("second", "u2"))) as stream:
        await stream.until("RUN_STARTED")
        answer = await chat.post_run(chat.body("t", *history))
        assert (answer.status_code, answer.json()["code"]) == (409, "thread_busy")
        gate.set()
        await stream.rest()


@pytest.mark.requirement("AGUI-07")
async def test_after_two_failures_the_same_list_still_asks_for_the_answer(open_chat: OpenChat) -> None:
    chat = await open_chat([ValueError("no")], [ValueError("no")], "here", "there")
    for run in ("r1", "r2"):
        assert (await chat.run("t", user("hello", "u1"), run=run))[-1].type == "RUN_ERROR"
    assert text_of(await chat.run("t", user("hello", "u1"), run="r3")) == "here"
    assert await previous(chat, "r3") == "r2"
    assert await chat.texts("t") == [("user", "hello"), ("assistant", "here")]


@pytest.mark.requirement("AGUI-07", "AGUI-18")
async def test_a_branch_has_the_state_of_the_run_it_goes_on_from(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two", "three")
    await chat.run("t", user("first", "u1"), state={"n": 1})
    history = await chat.messages("t")
    await chat.run("t", *history, user("second", "u2"), state={"n": 2})
    events = await chat.run("t", *history, user("edited", "u3"), state={})
    assert [event.data["snapshot"] for event in events if event.type == "STATE_SNAPSHOT"] == [{"n": 1}]
    assert (await chat.client.get("/threads/t/state")).json()["state"] == {"n": 1}


@pytest.mark.requirement("AGUI-07")
async def test_a_live_run_is_not_branched_from(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat("one", [gate, "two"])
    await chat.run("t", user("first", "u1"), run="r1")
    history = await chat.messages("t")
    async with chat.streaming(chat.body("t", *history, user("second", "u2"), run="r2")) as stream:
        await stream.until("RUN_STARTED")
        for messages in ([history[0]], [*history, user("edited", "u3")]):
            answer = await chat.post_run(chat.body("t", *messages))
            assert (answer.status_code, answer.json()["runId"]) == (409, "r2")
        gate.set()
        await stream.rest()
