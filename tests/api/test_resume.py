"""A run that asks, and the answers that take it up, over HTTP."""

from typing import Any

import pytest

from app.agent.models.base import CallPiece
from app.agent.tools import ToolContext, ToolLike, tool
from tests.services.chat import Chat, OpenChat, text_of, user
from tests.services.sse import SseFrame


def asks(ran: list[str]) -> ToolLike:
    """A tool that needs approval and notes what it did."""

    @tool(approval=True)
    def send(to: str) -> str:
        """Sends."""
        ran.append(to)
        return f"sent to {to}"

    return send


def call(id: str, to: str = "ann") -> CallPiece:
    return CallPiece(id, f'{{"to": "{to}"}}', name="send", call_id=id)


def yes(interrupt: dict[str, Any], **payload: Any) -> dict[str, Any]:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True, **payload}}


async def pause(chat: Chat, run: str = "r1") -> list[dict[str, Any]]:
    """Runs into the questions of the first reply, and gives them."""
    await chat.run("t", user("send it", "u1"), run=run)
    (paused,) = await chat.runs("t")
    assert (paused["runId"], paused["status"]) == (run, "paused")
    return paused["interrupts"]


def results(events: list[SseFrame]) -> list[str]:
    return [event.data["content"] for event in events if event.type == "TOOL_CALL_RESULT"]


@pytest.mark.requirement("AGUI-09", "HIS-06")
async def test_an_approved_call_runs_and_the_run_is_taken_up_once(open_chat: OpenChat) -> None:
    ran: list[str] = []
    chat = await open_chat([call("c1")], "done", tools=[asks(ran)])
    (asked,) = await pause(chat)
    assert (asked["reason"], asked["toolCallId"], ran) == ("tool_call", "c1", [])
    (run,) = await chat.runs("t")
    assert not {"memory", "child", "callId"} & run["interrupts"][0].keys()
    history = await chat.messages("t")
    resume = [yes(asked, editedArgs={"to": "bob"})]
    events = await chat.run("t", *history, resume=resume, run="r2")
    assert (results(events), text_of(events), ran) == (["sent to bob"], "done", ["bob"])
    first, second = await chat.runs("t")
    assert (first["resumedBy"], second["previousRunId"]) == ("r2", "r1")


@pytest.mark.requirement("AGUI-09")
async def test_the_same_answer_again_is_told_how_the_thread_stands(open_chat: OpenChat) -> None:
    ran: list[str] = []
    chat = await open_chat([call("c1")], "done", tools=[asks(ran)])
    (asked,) = await pause(chat)
    history = await chat.messages("t")
    await chat.run("t", *history, resume=[yes(asked)], run="r2")
    again = await chat.post_run(chat.body("t", *history, resume=[yes(asked)], run="r3"))
    assert again.status_code == 200
    assert again.headers["verbatim-ignored-resume"] == "1"
    assert "MESSAGES_SNAPSHOT" in again.text
    assert "interrupt" not in again.text.rpartition("RUN_FINISHED")[2]
    same = await chat.post_run(chat.body("t", *history, resume=[yes(asked)], run="r2"))
    assert (same.status_code, same.headers["content-location"]) == (200, "/threads/t/runs/r2/events")
    no = {"interruptId": asked["id"], "status": "cancelled"}
    used = await chat.post_run(chat.body("t", *history, resume=[no], run="r2"))
    assert (used.status_code, used.json()["code"]) == (409, "run_exists")
    assert (ran, len(await chat.runs("t"))) == (["ann"], 2)


@pytest.mark.requirement("AGUI-09")
async def test_a_paused_thread_goes_nowhere_without_an_answer(open_chat: OpenChat) -> None:
    ran: list[str] = []
    chat = await open_chat([call("c1"), call("c2", "bob")], "done", tools=[asks(ran)])
    first, second = await pause(chat)
    history = await chat.messages("t")
    for messages, resume in [
        ([*history, user("and?", "u2")], []),
        ([user("and?", "u2")], []),
        (history[:1], []),
        (history, [yes(first)]),
        ([*history, user("and?", "u2")], [yes(first), {**yes(second), "interruptId": "gone"}]),
    ]:
        answer = await chat.post_run(chat.body("t", *messages, resume=resume))
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["field"]) == (409, "interrupts_open", "resume")
        assert problem["interruptIds"] == [first["id"], second["id"]]
    rest = await chat.client.post("/threads/t/runs", json={"text": "and?"})
    assert (rest.status_code, rest.json()["code"]) == (409, "interrupts_open")
    assert (ran, len(chat.model.prompts), await chat.messages("t")) == ([], 1, history)
    await chat.run("t", *history, resume=[yes(first), yes(second)])
    assert sorted(ran) == ["ann", "bob"]


@pytest.mark.requirement("AGUI-09")
async def test_an_answer_that_does_not_fit_changes_nothing(open_chat: OpenChat) -> None:
    ran: list[str] = []
    chat = await open_chat([call("c1")], "done", tools=[asks(ran)])
    (asked,) = await pause(chat)
    for payload, place in [
        ({"approved": "yes"}, "/approved"),
        ({"approved": True, "editedArgs": {"to": 5}}, "/editedArgs/to"),
        (7, ""),
    ]:
        resume = [{"interruptId": asked["id"], "status": "resolved", "payload": payload}]
        answer = await chat.post_run(chat.body("t", resume=resume))
        assert (answer.status_code, answer.json()["field"]) == (422, f"resume/0/payload{place}")
    assert (ran, len(await chat.runs("t"))) == ([], 1)


@pytest.mark.requirement("AGUI-09")
async def test_a_client_that_comes_back_is_asked_again(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1")], "done", tools=[asks([])])
    (asked,) = await pause(chat)
    events = await chat.run("t", *await chat.messages("t"))
    assert [event.type for event in events] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    outcome = events[-1].data["outcome"]
    assert (outcome["type"], [one["id"] for one in outcome["interrupts"]]) == ("interrupt", [asked["id"]])


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize("given", ["decisions", "list", "verdict"])
async def test_the_older_shape_takes_up_a_run(open_chat: OpenChat, given: str) -> None:
    ran: list[str] = []
    chat = await open_chat([call("c1")], "done", tools=[asks(ran)])
    (asked,) = await pause(chat)
    shapes: dict[str, Any] = {
        "decisions": {"decisions": [{"toolCallId": "c1", "action": "approve"}]},
        "list": [{"interruptId": asked["id"], "approved": True}],
        "verdict": True,
    }
    props = {"command": {"resume": shapes[given]}}
    events = await chat.run("t", forwardedProps=props, protocolVersion=None)
    assert (text_of(events), ran) == ("done", ["ann"])


@pytest.mark.requirement("HIS-06", "AGUI-09")
async def test_a_paused_run_that_is_not_the_head_is_taken_up_by_its_id(open_chat: OpenChat) -> None:
    ran: list[str] = []
    chat = await open_chat([call("c1")], "elsewhere", "done", tools=[asks(ran)])
    (asked,) = await pause(chat)
    start = {"conversation": {"previousRunId": "start"}}
    await chat.run("t", user("never mind", "u2"), run="r2", forwardedProps=start)
    back = {"conversation": {"previousRunId": "r1"}}
    refused = await chat.post_run(chat.body("t", user("and?", "u3"), forwardedProps=back))
    assert (refused.status_code, refused.json()["code"]) == (409, "interrupts_open")
    answer = await chat.post_run(chat.body("t", resume=[yes(asked)], run="r3", forwardedProps=back))
    assert answer.headers["verbatim-previous-run"] == "r1"
    assert ran == ["ann"]
    assert await chat.texts("t") == [
        ("user", "send it"),
        ("assistant", None),
        ("tool", "sent to ann"),
        ("assistant", "done"),
    ]


@pytest.mark.requirement("AGUI-09")
async def test_the_transcript_tells_what_the_thread_waits_for(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1")], tools=[asks([])])
    (asked,) = await pause(chat)
    run = (await chat.client.get("/threads/t/transcript")).json()["latest"]
    assert [question["id"] for question in run["interrupts"]] == [asked["id"]]
    assert "memory" not in run["interrupts"][0]


@pytest.mark.requirement("AGUI-09", "HIS-06")
async def test_what_a_person_says_with_an_answer_reaches_the_model_behind_the_results(
    open_chat: OpenChat,
) -> None:
    chat = await open_chat([call("c1")], "done", tools=[asks([])])
    (asked,) = await pause(chat)
    history = await chat.messages("t")
    await chat.run("t", *history, user("and hurry", "u2"), resume=[yes(asked)])
    said = [message.join_text() for message in chat.model.prompts[-1].messages]
    assert said == ["send it", "", "sent to ann", "and hurry"]


@pytest.mark.requirement("AGUI-09")
async def test_answers_to_nothing_are_counted_beside_a_run_that_starts(open_chat: OpenChat) -> None:
    chat = await open_chat("hi")
    answer = await chat.post_run(
        chat.body("t", "hello", resume=[{"interruptId": "gone", "status": "cancelled"}])
    )
    assert (answer.status_code, answer.headers["verbatim-ignored-resume"]) == (200, "1")


@pytest.mark.requirement("AGUI-07", "AGUI-09")
async def test_another_answer_to_what_was_said_before_a_second_question_leaves_no_call_open(
    open_chat: OpenChat,
) -> None:
    def book(context: ToolContext) -> str:
        return f"{context.ask('Where?')} {context.ask('When?')}"

    first = [call("c1"), CallPiece("b", "{}", name="book", call_id="b")]
    chat = await open_chat(first, "booked", "another", "next", tools=[asks([]), book])
    leave, where = await pause(chat)
    answers = [yes(leave), {"interruptId": where["id"], "status": "resolved", "payload": "Basel"}]
    await chat.run("t", user("hurry", "u2"), resume=answers, run="r2")
    (*_, second) = await chat.runs("t")
    (when,) = second["interrupts"]
    answers = [{"interruptId": when["id"], "status": "resolved", "payload": "today"}]
    assert text_of(await chat.run("t", resume=answers, run="r3")) == "booked"
    history = await chat.messages("t")
    cut = [message["id"] for message in history].index("u2") + 1
    assert text_of(await chat.run("t", *history[:cut], run="r4")) == "another"
    said = await chat.texts("t")
    assert [role for role, _ in said] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert said[2] == ("tool", "sent to ann")
    assert "not executed" in said[3][1]
    assert text_of(await chat.run("t", user("and?", "u3"))) == "next"


@pytest.mark.requirement("AGUI-09", "AGUI-16")
@pytest.mark.parametrize(
    ("schema", "status"),
    [
        ({"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}, 422),
        ({"$ref": "#"}, 422),
        ({"type": "wat"}, 200),
        ({"properties": 5}, 200),
    ],
)
async def test_a_schema_that_goes_round_or_is_none_fails_no_request(
    open_chat: OpenChat, schema: dict[str, Any], status: int
) -> None:
    def book(context: ToolContext) -> str:
        context.ask("Where?", schema)
        return "booked"

    chat = await open_chat([CallPiece("b", "{}", name="book", call_id="b")], "done", tools=[book])
    (where,) = await pause(chat)
    payload: Any = {}
    for _ in range(240):
        payload = [payload]
    answers = [{"interruptId": where["id"], "status": "resolved", "payload": payload}]
    answer = await chat.post_run(chat.body("t", resume=answers, run="r2"))
    assert answer.status_code == status, answer.text
