"""Runs over HTTP: started, followed from any place, stopped; they belong to the server."""

import asyncio
import gc
from collections.abc import Callable

import pytest

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.runs.log import WRITE_LIMIT
from app.serving import DrainedProtocol
from tests.services.chat import Chat, OpenChat, Stream, text_of, user
from tests.services.sse import SseFrame
from tests.services.waiting import eventually


async def status_of(chat: Chat, thread: str, run: str) -> str:
    return (await chat.client.get(f"/threads/{thread}/runs/{run}")).json()["status"]


async def settled(chat: Chat, thread: str, run: str) -> str:
    """Waits for the end of a run and gives its status."""

    async def ended() -> bool:
        return await status_of(chat, thread, run) != "running"

    await eventually(ended)
    return await status_of(chat, thread, run)


def types(events: list[SseFrame]) -> list[str]:
    return [event.type for event in events]


@pytest.mark.requirement("AGUI-01")
async def test_a_run_begins_and_ends_with_the_ids_of_the_request(open_chat: OpenChat) -> None:
    chat = await open_chat("Hello!")
    events = await chat.run("thread-1", "hi", run="client-run-1")
    assert types(events)[0] == "RUN_STARTED"
    assert types(events)[-1] == "RUN_FINISHED"
    for event in (events[0], events[-1]):
        assert (event.data["threadId"], event.data["runId"]) == ("thread-1", "client-run-1")
    assert text_of(events) == "Hello!"


@pytest.mark.requirement("AGUI-01", "AGUI-05")
async def test_what_a_client_saw_closed_is_stored_already(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat(
        ["All of it.", CallPiece("0", "{}", name="wait", call_id="c")], "end", tools=[waits(gate)]
    )
    async with chat.streaming(chat.body("t", "go")) as stream:
        seen = await stream.until("STEP_FINISHED")
        closing = [event for event in seen if event.type == "TEXT_MESSAGE_END"][-1]
        stored = await chat.messages("t")
        assert stored[-1]["id"] == closing.data["messageId"]
        assert stored[-1]["content"] == "All of it."
        gate.set()
        result = (await stream.until("TOOL_CALL_RESULT"))[-1]
        assert result.data["messageId"] in [message["id"] for message in await chat.messages("t")]
        await stream.until("RUN_FINISHED")
        assert await status_of(chat, "t", seen[0].data["runId"]) == "completed"


def waits(gate: asyncio.Event) -> Callable[[], object]:
    async def wait() -> str:
        """Waits for the gate."""
        await gate.wait()
        return "waited"

    return wait


@pytest.mark.requirement("LIVE-01")
async def test_a_client_that_leaves_changes_nothing_for_the_run(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat(["first ", gate, "second"])
    async with chat.streaming(chat.body("t", "go", run="r")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
    gate.set()
    assert await settled(chat, "t", "r") == "completed"
    assert await chat.texts("t") == [("user", "go"), ("assistant", "first second")]


@pytest.mark.requirement("LIVE-01")
@pytest.mark.parametrize("door", ["agui", "rest"])
async def test_a_client_may_ask_that_its_leaving_cancels_the_run(open_chat: OpenChat, door: str) -> None:
    chat = await open_chat(["first ", asyncio.Event(), "never"])
    if door == "agui":
        props = {"conversation": {"onDisconnect": "cancel"}}
        async with chat.streaming(chat.body("t", "go", run="r", forwardedProps=props)) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT")
    else:
        body = {"text": "go", "runId": "r", "onDisconnect": "cancel"}
        accept = {"Accept": "text/event-stream"}
        async with chat.client.stream("POST", "/threads/t/runs", json=body, headers=accept) as response:
            await Stream(response).until("TEXT_MESSAGE_CONTENT")
    assert await settled(chat, "t", "r") == "stopped"
    assert (await chat.runs("t"))[0]["endReason"] == "client_left"
    assert chat.model.closed == 1


@pytest.mark.requirement("LIVE-01")
async def test_clients_that_leave_before_the_first_byte_wedge_no_thread(open_chat: OpenChat) -> None:
    chat = await open_chat(*["answer"] * 60)
    for number in range(30):
        posting = asyncio.create_task(chat.post_run(chat.body(f"t{number}", "go", run=f"r{number}")))
        await asyncio.sleep(0.0005 * (number % 6))
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
    for thread in await chat.threads():
        id = thread["threadId"]
        assert await settled(chat, id, id.replace("t", "r")) == "completed"
        assert types(await chat.run(id, "again"))[-1] == "RUN_FINISHED"


@pytest.mark.requirement("LIVE-03")
async def test_followers_from_any_place_get_the_same_bytes(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat(["a", "b", gate, *"cdefgh"])
    async with chat.streaming(chat.body("t", "go", run="r")) as stream:
        first = await stream.until("TEXT_MESSAGE_CONTENT")
        async with chat.following("/threads/t/stream") as current:
            gate.set()
            whole = first + await stream.rest()
            joined = await current.rest()
    raw = [event.raw for event in whole]
    assert [event.raw for event in joined] == raw
    assert [event.raw for event in await all_of(chat, "/threads/t/runs/r/events")] == raw
    for place in (0, 1, len(whole) // 2, len(whole) - 1):
        position = whole[place].id
        assert position is not None
        resumed = await all_of(chat, "/threads/t/runs/r/events", **{"Last-Event-ID": position})
        assert [event.raw for event in resumed] == raw[place + 1 :]
        asked = await all_of(chat, f"/threads/t/runs/r/events?after={position}")
        assert [event.raw for event in asked] == raw[place + 1 :]


async def all_of(chat: Chat, path: str, **headers: str) -> list[SseFrame]:
    async with chat.following(path, **headers) as stream:
        return await stream.rest()


@pytest.mark.requirement("LIVE-02")
async def test_a_position_that_is_not_of_the_log_is_answered_by_the_present(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    events = await chat.run("t", "hello", run="r")
    seq, epoch, last = (int(part) for part in (events[-1].id or "").split("."))
    assert await all_of(chat, f"/threads/t/runs/r/events?after={seq}.{epoch}.{last}") == []
    for position in (f"{seq}.{epoch}.{last + 1}", f"{seq + 1}.{epoch}.1", f"{seq}.{epoch + 1}.1"):
        told = await all_of(chat, f"/threads/t/runs/r/events?after={position}")
        assert types(told) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert told[1].data["messages"] == await chat.messages("t")
    answer = await chat.client.get("/threads/t/runs/r/events?after=nonsense")
    assert (answer.status_code, answer.json()["field"]) == (422, "Last-Event-ID")


async def test_a_thread_stream_takes_no_notice_of_the_position_of_an_earlier_run(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat("one", [gate, "two"])
    earlier = (await chat.run("t", "hello"))[-1].id or ""
    async with chat.streaming(chat.body("t", "more")) as stream:
        await stream.until("RUN_STARTED")
        async with chat.following("/threads/t/stream", **{"Last-Event-ID": earlier}) as current:
            gate.set()
            assert types(await current.rest())[0] == "RUN_STARTED"


async def test_of_one_list_posted_many_times_at_once_one_is_answered(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat([gate, "answer"])
    said = user("hello", "u1")
    posts = [asyncio.create_task(chat.post_run(chat.body("t", said))) for _ in range(8)]
    await eventually(lambda: sum(post.done() for post in posts) == 7)
    gate.set()
    statuses = sorted(answer.status_code for answer in await asyncio.gather(*posts))
    assert statuses == [200] + [409] * 7
    assert await chat.texts("t") == [("user", "hello"), ("assistant", "answer")]


@pytest.mark.requirement("LIVE-03")
async def test_a_reader_that_stops_reading_delays_nobody(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat([gate, *["x" * 1000] * 5000])
    async with chat.streaming(chat.body("t", "go", run="r")) as stalled:
        await stalled.until("RUN_STARTED")
        gate.set()
        assert await settled(chat, "t", "r") == "completed"
        other = await all_of(chat, "/threads/t/runs/r/events")
        assert len(text_of(other)) == 5_000_000
        assert text_of(await stalled.rest()) == text_of(other)


@pytest.mark.requirement("LIVE-03")
async def test_a_follower_that_reads_nothing_holds_one_write_in_memory(open_chat: OpenChat) -> None:
    chat = await open_chat(["x" * 1000] * 20_000)
    async with chat.streaming(chat.body("t", "go", run="r")) as deaf:
        assert await settled(chat, "t", "r") == "completed"
        buffered = [
            protocol.transport.get_write_buffer_size()
            for protocol in gc.get_objects()
            if isinstance(protocol, DrainedProtocol) and not protocol.transport.is_closing()
        ]
        assert 0 < max(buffered) <= WRITE_LIMIT + 100  # what chunked transfer adds
        assert len(text_of(await deaf.rest())) == 20_000_000


async def test_nothing_to_follow_is_204(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    await chat.run("t", "hello")
    assert (await chat.client.get("/threads/t/stream")).status_code == 204


async def test_a_run_whose_log_is_gone_is_told_again_from_storage(open_chat: OpenChat) -> None:
    script = [["Let me. ", CallPiece("0", "{}", name="wait", call_id="c")], "Done."]
    gate = asyncio.Event()
    gate.set()
    chat = await open_chat(*script, tools=[waits(gate)], log_retention_seconds=0)
    live = await chat.run("t", "go", run="r")
    again = await all_of(chat, "/threads/t/runs/r/events")
    assert again[0].id is not None
    assert again[0].id.split(".")[1] == "2"
    assert text_of(again) == text_of(live)
    for kind in ("RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_RESULT", "RUN_FINISHED"):
        assert [event.data.get("messageId") for event in again if event.type == kind] == [
            event.data.get("messageId") for event in live if event.type == kind
        ]
    async with chat.following("/threads/t/runs/r/events", **{"Last-Event-ID": live[1].id or ""}) as stream:
        assert types(await stream.rest()) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]


async def test_a_busy_thread_refuses_the_second_run_and_names_the_first(open_chat: OpenChat) -> None:
    gate = asyncio.Event()
    chat = await open_chat([gate, "one"], "two")
    async with chat.streaming(chat.body("t", "go", run="first")) as stream:
        await stream.until("RUN_STARTED")
        refused = await chat.post_run(chat.body("t", "me too", run="second"))
        assert refused.status_code == 409
        problem = refused.json()
        assert (problem["code"], problem["runId"]) == ("thread_busy", "first")
        assert (await chat.client.get("/threads/t/runs/second")).status_code == 404
        gate.set()
        await stream.rest()
        followed = await all_of(chat, problem["stream"])
    assert text_of(followed) == "one"
    assert await chat.texts("t") == [("user", "go"), ("assistant", "one")]
    assert text_of(await chat.run("t", "me too", run="second")) == "two"


async def test_a_used_run_id_is_refused_everywhere_in_the_namespace(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    await chat.run("t", "go", run="r")
    for thread in ("t", "other"):
        again = await chat.post_run(chat.body(thread, "go", run="r"))
        assert (again.status_code, again.json()["code"], again.json()["field"]) == (
            409,
            "run_exists",
            "runId",
        )
    assert len(await chat.threads()) == 1


@pytest.mark.requirement("AGUI-03")
async def test_frames_hold_no_character_that_a_reader_may_take_for_a_line_end(open_chat: OpenChat) -> None:
    odd = "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg\rh\ni"
    chat = await open_chat(odd)
    events = await chat.run("t", user(odd, "u1"), state={"odd": odd})
    assert text_of(events) == odd
    assert all(len(event.raw.decode().splitlines()) == 3 for event in events)
    assert await chat.texts("t") == [("user", odd), ("assistant", odd)]


@pytest.mark.requirement("HIS-13")
async def test_of_many_posts_at_once_one_runs_and_the_rest_are_refused(open_chat: OpenChat) -> None:
    chat = await open_chat(*[["x", asyncio.Event()] for _ in range(20)])
    posts = [chat.client.post("/threads/t/runs", json={"text": f"{n}"}) for n in range(20)]
    answers = [answer.status_code for answer in await asyncio.gather(*posts)]
    assert sorted(answers) == [202] + [409] * 19
    [run] = await chat.runs("t")
    assert len(await chat.messages("t")) == 1
    assert (await chat.client.post(f"/threads/t/runs/{run['runId']}/stop")).status_code == 200


async def test_stop_keeps_the_text_so_far_and_frees_the_thread(open_chat: OpenChat) -> None:
    chat = await open_chat(["Half an ans", asyncio.Event(), "wer"], "next")
    async with chat.streaming(chat.body("t", "go", run="r")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        stopped = await chat.client.post("/threads/t/runs/r/stop")
        assert (stopped.status_code, stopped.json()["status"]) == (200, "stopped")
        rest = await stream.rest()
    assert types(rest)[-1] == "RUN_FINISHED"
    assert rest[-1].data["outcome"] == {"type": "cancelled"}
    partial = (await chat.messages("t"))[-1]
    assert partial["content"] == "Half an ans"
    assert partial["metadata"]["stopReason"] == "aborted"
    assert (await chat.runs("t"))[0]["endReason"] == "stop_requested"
    assert chat.model.closed == 1
    assert text_of(await chat.run("t", "and?")) == "next"
    assert [m.join_text() for m in chat.model.prompts[1].messages] == ["go", "Half an ans", "and?"]


async def test_stop_in_a_tool_gives_every_call_a_result(open_chat: OpenChat) -> None:
    calls = [CallPiece(str(n), "{}", name="wait", call_id=f"c{n}") for n in range(2)]
    chat = await open_chat(calls, "next", tools=[waits(asyncio.Event())])
    async with chat.streaming(chat.body("t", "go", run="r")) as stream:
        await stream.until("TOOL_CALL_END")
        await eventually(lambda: chat.model.closed == 1)
        assert (await chat.client.post("/threads/t/runs/r/stop")).status_code == 200
        rest = await stream.rest()
    results = [event.data for event in rest if event.type == "TOOL_CALL_RESULT"]
    assert [result["toolCallId"] for result in results] == ["c0", "c1"]
    assert all(result["metadata"]["isError"] for result in results)
    assert text_of(await chat.run("t", "and?")) == "next"


async def test_stopping_a_run_that_has_ended_tells_how_it_ended(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    await chat.run("t", "hello", run="r")
    answer = await chat.client.post("/threads/t/runs/r/stop")
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")


@pytest.mark.requirement("AGUI-01")
async def test_an_agent_that_breaks_off_ends_its_run_with_an_error(open_chat: OpenChat) -> None:
    class Broken(Agent):
        async def respond(self, context: object):
            raise RuntimeError("secret")
            yield

    class Silent(Agent):
        async def respond(self, context: object):
            return
            yield

    names = ["broken", "silent"]
    agents = [kind(name, model=ScriptedModel([])) for kind, name in zip((Broken, Silent), names, strict=True)]
    chat = await open_chat(agents=[*agents, Agent("assistant", model=ScriptedModel(["fine"]))])
    for name in names:
        answer = await chat.post_run(chat.body("t", "go"), agent=name)
        assert answer.text.count("RUN_ERROR") == 1
        assert "INTERNAL_ERROR" in answer.text
        assert "secret" not in answer.text
    assert text_of(await chat.run("t", "and you?")) == "fine"
    assert [run["status"] for run in await chat.runs("t")] == ["failed", "failed", "completed"]
    assert [run["agent"] for run in await chat.runs("t")] == [*names, "assistant"]


async def test_plain_rest_says_text_to_an_agent(open_chat: OpenChat) -> None:
    chat = await open_chat("one", "two")
    first = await chat.client.post(
        "/threads/t/runs", json={"text": "hello", "runId": "r1", "messageId": "m1"}
    )
    assert first.status_code == 202
    assert first.headers["location"] == "/threads/t/runs/r1"
    assert first.json()["status"] == "running"
    assert await settled(chat, "t", "r1") == "completed"
    accept = {"Accept": "text/event-stream"}
    second = await chat.client.post("/threads/t/runs", json={"text": "more"}, headers=accept)
    assert second.headers["content-type"].startswith("text/event-stream")
    assert "two" in second.text
    assert await chat.texts("t") == [
        ("user", "hello"),
        ("assistant", "one"),
        ("user", "more"),
        ("assistant", "two"),
    ]
    assert (await chat.messages("t"))[0]["id"] == "m1"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": 7}, "text"),
        ({"text": "x", "agent": "nobody"}, "agent"),
        ({"text": "x", "runId": "a/b"}, "runId"),
        ({"text": "x", "onDisconnect": "explode"}, "onDisconnect"),
        ({"text": "x", "more": 1}, "more"),
    ],
)
async def test_a_bad_rest_run_is_refused_and_nothing_stored(
    open_chat: OpenChat, body: object, field: str
) -> None:
    chat = await open_chat("never")
    answer = await chat.client.post("/threads/t/runs", json=body)
    assert 400 <= answer.status_code < 500
    assert answer.json()["field"] == field
    assert await chat.threads() == []


@pytest.mark.requirement("AGUI-17")
async def test_agents_tell_what_they_really_do(open_chat: OpenChat) -> None:
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    adder = Agent("adder", model=ScriptedModel([]), tools=[add], description="Adds numbers.")
    plain = Agent("plain", model=ScriptedModel([], inputs=frozenset({"image"})))
    chat = await open_chat(agents=[adder, plain])
    listed = (await chat.client.get("/agents")).json()
    assert listed == {
        "agents": [{"name": "adder", "description": "Adds numbers."}, {"name": "plain", "description": ""}]
    }
    first = (await chat.client.get("/agents/adder/capabilities")).json()
    second = (await chat.client.get("/agents/plain/capabilities")).json()
    assert first["tools"]["supported"] is True
    assert [item["name"] for item in first["tools"]["items"]] == ["add"]
    assert first["multimodal"]["input"]["image"] is False
    assert second["tools"]["items"] == []
    assert (second["tools"]["supported"], second["tools"]["clientProvided"]) == (True, True)
    assert second["multimodal"]["input"]["image"] is True
    assert (await chat.client.get("/agents/nobody/capabilities")).status_code == 404
    assert (await chat.post_run(chat.body("t", "x"), agent="nobody")).status_code == 404


async def test_streams_are_not_cached_buffered_or_compressed(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    async with chat.client.stream(
        "POST", "/agents/assistant/run", json=chat.body("t", user("hi")), headers={"Accept-Encoding": "gzip"}
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert "no-cache" in response.headers["cache-control"]
        assert response.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in response.headers
        await response.aread()
