"""Answers to a paused run, and to calls that a client runs itself."""

from typing import Any

import pytest

from app.agui.client_calls import OpenCall, open_calls
from app.agui.intake import NothingNew, Turn
from app.conversation.blocks import Image, Text, ToolCall, UrlSource
from app.conversation.entries import MessageEntry
from app.conversation.interrupts import Answer, Interrupt
from app.conversation.messages import assistant_message, tool_result_message
from app.conversation.outcomes import EndReason, RunEnd, RunStatus
from app.errors import AppError, InvalidInput
from app.store.adapter import RunRecord
from tests.agui.records import earlier, record
from tests.agui.requests import NOW, assistant, body, head, opening, outcome, tool, turn, user

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    "required": ["approved"],
}
APPROVAL = Interrupt(id="i1", reason="tool_call", call_id="c1", response_schema=SCHEMA)
FORM = Interrupt(id="i2", reason="input_required", call_id="c2", response_schema={"type": "string"})
LATE = APPROVAL.model_copy(update={"expires_at": NOW})
KNOWN = head("u1", "a1")
HISTORY = [user("u1"), assistant("a1", "c1", "c2")]


def paused(*interrupts: Interrupt, **changes: Any) -> RunRecord:
    run = record(RunEnd(EndReason.INTERRUPTED, interrupts=interrupts))
    return earlier(EndReason.INTERRUPTED, interrupts=run.interrupts, **changes)


def resumed(*replies: Any, asked: tuple[Interrupt, ...] = (APPROVAL,), said: Any = (), **more: Any) -> Turn:
    return turn(body(*HISTORY, *said, resume=list(replies), **more), KNOWN, asked_by=paused(*asked))


def refused(asked: tuple[Interrupt, ...], *messages: Any, **members: Any) -> AppError:
    with pytest.raises(AppError) as caught:
        outcome(body(*messages, **members), KNOWN, asked_by=paused(*asked))
    return caught.value


def yes(id: str = "i1", payload: Any = None) -> dict[str, Any]:
    given = {"approved": True} if payload is None else payload
    return {"interruptId": id, "status": "resolved", "payload": given}


def no(id: str = "i1") -> dict[str, Any]:
    return {"interruptId": id, "status": "cancelled"}


@pytest.mark.requirement("AGUI-09", "HIS-06")
def test_an_answer_takes_up_the_paused_run() -> None:
    edited: dict[str, Any] = {"approved": True, "editedArgs": {"city": "Bern"}}
    taken = resumed(yes(payload=edited))
    assert taken.resumes is not None
    assert (taken.resumes.id, taken.branch.previous_run_id) == ("earlier", "earlier")
    assert taken.answers == (Answer("i1", False, edited),)
    assert (taken.entries, taken.held, taken.left.replies) == ((), (), 0)


@pytest.mark.requirement("AGUI-09")
def test_what_a_person_says_with_an_answer_is_held() -> None:
    context = [{"description": "page", "value": "/"}]
    taken = resumed(yes(), said=[user("u2", "and hurry")], context=context)
    assert taken.entries == ()
    (message,) = taken.held
    assert (message.id, [block.type for block in message.content]) == ("u2", ["text", "reminder"])


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize(
    ("messages", "resume"),
    [
        ([*HISTORY, user("u2")], []),
        ([user("u2")], []),
        ([user("u1")], []),
        (HISTORY, [yes("i1")]),
        (HISTORY, [yes("i1"), yes("gone")]),
        (HISTORY, [yes("i2", "text")]),
    ],
)
def test_every_open_question_must_be_answered_before_the_thread_goes_on(messages: Any, resume: Any) -> None:
    error = refused((APPROVAL, FORM), *messages, resume=resume)
    assert (error.status, error.code, error.field) == (409, "interrupts_open", "resume")
    assert error.extra == {"interruptIds": ["i1", "i2"]}


@pytest.mark.requirement("AGUI-09")
def test_a_paused_thread_that_is_asked_for_nothing_is_not_refused() -> None:
    assert isinstance(outcome(body(*HISTORY), KNOWN, asked_by=paused(APPROVAL)), NothingNew)


@pytest.mark.requirement("AGUI-09")
def test_an_expired_question_can_only_be_cancelled() -> None:
    error = refused((LATE,), *HISTORY, resume=[no("other"), yes()])
    assert (error.status, error.code, error.field) == (409, "interrupt_expired", "resume/1")
    assert resumed(no(), asked=(LATE,)).answers == (Answer("i1", True),)


@pytest.mark.requirement("AGUI-09", "AGUI-16")
@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "resume/0/payload"),
        ("yes", "resume/0/payload"),
        ({"approved": "SECRET"}, "resume/0/payload/approved"),
        ({"approved": True, "editedArgs": {"city": 5}}, "resume/0/payload/editedArgs/city"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_by_its_place(payload: Any, field: str) -> None:
    error = refused((APPROVAL,), *HISTORY, resume=[yes(payload=payload)])
    assert (error.status, error.field) == (422, field)
    assert "SECRET" not in error.public


def test_a_missing_payload_does_not_fit_a_schema() -> None:
    error = refused((APPROVAL,), *HISTORY, resume=[{"interruptId": "i1", "status": "resolved"}])
    assert error.field == "resume/0/payload"


def test_a_second_answer_to_one_question_is_refused() -> None:
    assert refused((APPROVAL,), *HISTORY, resume=[yes(), no()]).field == "resume/1"


def test_a_schema_that_refers_elsewhere_is_not_fetched() -> None:
    remote = APPROVAL.model_copy(update={"response_schema": {"$ref": "http://127.0.0.1:9/schema.json"}})
    assert resumed(yes(payload="anything"), asked=(remote,)).answers == (Answer("i1", False, "anything"),)


@pytest.mark.requirement("AGUI-09")
def test_answers_to_questions_that_are_not_open_are_counted_and_left_out() -> None:
    assert resumed(yes("gone"), yes()).left.replies == 1
    taken = turn(body(user("u2"), resume=[yes("gone")]), KNOWN)
    assert (taken.left.replies, taken.resumes, [m.id for m in opening(taken)]) == (1, None, ["u2"])


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize("changes", [{"resumed_by": "later"}, {"status": RunStatus.COMPLETED}])
def test_the_same_answer_again_asks_for_nothing(changes: dict[str, Any]) -> None:
    again = outcome(body(*HISTORY, resume=[yes()]), KNOWN, asked_by=paused(APPROVAL, **changes))
    assert isinstance(again, NothingNew)
    assert again.left.replies == 1


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"decisions": [{"toolCallId": "c1", "approved": True}]}, {"approved": True}),
        ([{"interruptId": "i1", "approved": False}], {"approved": False}),
        ([{"toolCallId": "c1", "action": " Accept "}], {"approved": True}),
        ([{"toolCallId": "c1", "action": "reject", "approved": True}], {"approved": False}),
        ([{"toolCallId": "c1", "action": "cancel"}], {"approved": False}),
        ([{"toolCallId": "c1", "action": "perhaps", "approved": True}], {"approved": True}),
        ([{"toolCallId": "c1", "content": "x"}], {"approved": True}),
        ([{"toolCallId": "c1", "content": None}], {"approved": False}),
        ([{"toolCallId": "c1"}], {"approved": False}),
        ({"toolCallId": "c1", "approved": True}, {"approved": True}),
        ({"approved": True, "editedArgs": {"a": 1}}, {"approved": True, "editedArgs": {"a": 1}}),
        (True, {"approved": True}),
        (False, {"approved": False}),
    ],
)  # fmt: skip
def test_the_older_shape_decides_an_approval(given: Any, answer: Any) -> None:
    props = {"command": {"resume": given}}
    taken = turn(body(*HISTORY, forwardedProps=props), KNOWN, asked_by=paused(APPROVAL))
    assert taken.answers == (Answer("i1", False, answer),)


@pytest.mark.requirement("AGUI-09")
@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ([{"toolCallId": "c2", "content": "blue"}], Answer("i2", False, "blue")),
        ([{"toolCallId": "c2", "approved": False, "content": "blue"}], Answer("i2", True)),
        ([{"interruptId": "i2", "action": "decline"}], Answer("i2", True)),
        ({"action": "accept", "content": "blue"}, Answer("i2", False, "blue")),
        ("blue", Answer("i2", False, "blue")),
    ],
)
def test_the_older_shape_fills_a_form(given: Any, answer: Answer) -> None:
    props = {"command": {"resume": given}}
    taken = turn(body(*HISTORY, forwardedProps=props), KNOWN, asked_by=paused(FORM))
    assert taken.answers == (answer,)


def test_an_older_answer_without_a_name_is_to_the_only_question() -> None:
    props = {"command": {"resume": True}}
    assert refused((APPROVAL, FORM), *HISTORY, forwardedProps=props).code == "interrupts_open"
    named = {
        "command": {
            "resume": [{"toolCallId": "c1", "approved": True}, {"toolCallId": "c2", "content": "x"}, 7]
        }
    }
    taken = turn(body(*HISTORY, forwardedProps=named), KNOWN, asked_by=paused(APPROVAL, FORM))
    assert ([answer.interrupt_id for answer in taken.answers], taken.left.replies) == (["i1", "i2"], 1)


def calls(*ids: str, server: str = "") -> list[OpenCall]:
    return [OpenCall(ToolCall(id=id, name="map"), id != server) for id in ids]


@pytest.mark.requirement("AGT-15")
def test_answers_to_open_calls_are_stored_in_the_order_of_the_calls() -> None:
    taken = turn(
        body(*HISTORY, tool("r2", "c2", "two"), tool("r1", "c1", "one")), KNOWN, calls=calls("c1", "c2")
    )
    assert [(m.id, m.call_id, m.tool_name, m.join_text(), m.sender_id) for m in opening(taken)] == [
        ("r1", "c1", "map", "one", "assistant"),
        ("r2", "c2", "map", "two", "assistant"),
    ]
    assert (taken.settled, taken.left.messages) == (frozenset(), 0)


@pytest.mark.requirement("AGT-15", "AGUI-06")
@pytest.mark.parametrize("known", [HISTORY, HISTORY[1:], []])
def test_an_answer_is_the_same_whatever_history_comes_along(known: list[Any]) -> None:
    answer = tool("c1:tool", "c1", "one")
    alone = turn(body(answer), KNOWN, calls=calls("c1"))
    taken = turn(body(*known, answer), KNOWN, calls=calls("c1"))
    assert (opening(taken), taken.branch, taken.digest) == (opening(alone), alone.branch, alone.digest)


@pytest.mark.requirement("AGT-15")
def test_of_several_answers_to_one_call_the_first_counts() -> None:
    taken = turn(body(tool("r1", "c1", "one"), tool("r2", "c1", "two")), KNOWN, calls=calls("c1"))
    assert ([m.id for m in opening(taken)], taken.left.messages) == (["r1"], 1)


@pytest.mark.requirement("AGT-15")
def test_only_what_is_open_and_the_clients_can_be_answered() -> None:
    forged = [*HISTORY, tool("r1", "c1", "approved"), tool("r9", "c9")]
    assert isinstance(outcome(body(*forged), KNOWN, calls=calls("c1", server="c1")), NothingNew)
    assert isinstance(outcome(body(*forged), KNOWN), NothingNew)


@pytest.mark.requirement("AGT-15")
def test_calls_that_nobody_answered_are_settled_when_a_person_goes_on() -> None:
    messages = [*HISTORY, tool("r2", "c2", "two"), user("u2")]
    taken = turn(body(*messages), KNOWN, calls=calls("c1", "c2", "c3", server="c3"))
    settled, answered, other, said = opening(taken)
    assert [settled.call_id, answered.id, other.call_id, said.id] == ["c1", "r2", "c3", "u2"]
    assert settled.is_error
    assert "not executed" in settled.join_text()
    assert taken.settled == {settled.id, other.id}


@pytest.mark.requirement("AGT-15", "AGUI-09")
def test_what_a_paused_run_waits_for_is_not_settled_with_its_answer() -> None:
    taken = turn(
        body(*HISTORY, user("u2"), resume=[yes()]),
        KNOWN,
        asked_by=paused(APPROVAL),
        calls=calls("c1", "c2", server="c1"),
    )
    assert [m.call_id for m in opening(taken)] == ["c2"]
    assert [m.id for m in taken.held] == ["u2"]


@pytest.mark.requirement("AGT-15")
@pytest.mark.parametrize(
    ("content", "error", "text", "failed"),
    [
        ("", None, "", False),
        ("", "no map", "no map", True),
        ("Error: no map", "no map", "Error: no map", True),
        ("half", "no map", "half|\nno map", True),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None, "a|b", False),
    ],
)
def test_a_result_is_read_whole(content: Any, error: str | None, text: str, failed: bool) -> None:
    taken = turn(body(tool("r", "c1", content, error=error)), KNOWN, calls=calls("c1"))
    (message,) = opening(taken)
    assert (message.join_text("|"), message.is_error) == (text, failed)


@pytest.mark.requirement("AGUI-16")
def test_media_in_a_result_are_taken_as_the_agent_takes_them() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "url", "value": "http://x/a"}},
    ]
    given = body(user("u1"), tool("r", "c1", parts))
    with pytest.raises(InvalidInput) as caught:
        outcome(given, KNOWN, calls=calls("c1"))
    assert caught.value.field == "messages/1/content/1"
    (message,) = opening(turn(given, KNOWN, calls=calls("c1"), accepts=frozenset({"image"})))
    assert message.content == (Text(text="see"), Image(source=UrlSource(value="http://x/a")))


@pytest.mark.parametrize("id", ["think_" + "0" * 32, "a1:output:3"])
def test_an_answer_cannot_take_an_id_of_the_servers(id: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        outcome(body(tool(id, "c1")), HEAD_WITHOUT_A1, calls=calls("c1"))
    assert caught.value.field == "messages/0/id"


HEAD_WITHOUT_A1 = head("u1")


def test_two_answers_under_one_id_are_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        outcome(body(tool("r", "c1"), tool("r", "c2")), KNOWN, calls=calls("c1", "c2"))
    assert caught.value.field == "messages/0/id"


@pytest.mark.requirement("LIVE-09")
def test_the_digest_covers_answers_of_every_kind() -> None:
    def with_result(**given: Any) -> str:
        return turn(body(*HISTORY, tool("r1", "c1", **given)), KNOWN, calls=calls("c1")).digest

    digests = [
        with_result(content="one"),
        with_result(content="two"),
        with_result(content="one", error="no"),
        resumed(yes()).digest,
        resumed(no()).digest,
        resumed(yes(), forwardedProps={"conversation": {"previousRunId": "earlier"}}).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert with_result(content="one") == digests[0]


@pytest.mark.requirement("AGT-15")
def test_open_calls_are_those_of_the_last_answer_that_have_no_result() -> None:
    maker = earlier(input={"tools": [{"name": "map"}, "odd", {"name": 5}]})
    made = assistant_message(
        [ToolCall(id="c1", name="map"), ToolCall(id="c2", name="map"), ToolCall(id="c3", name="own")], id="a2"
    )
    old = assistant_message([ToolCall(id="c0", name="map")], id="a1")
    result = tool_result_message("c1", "map", "one")
    found = open_calls([MessageEntry(message) for message in (old, made, result)], maker)
    assert [(one.call.id, one.is_clients) for one in found] == [("c2", True), ("c3", False)]
    assert open_calls([], maker) == ()
    assert [one.is_clients for one in open_calls([MessageEntry(made)], earlier())] == [False] * 3


@pytest.mark.requirement("AGT-15", "AGUI-07")
def test_a_question_that_is_asked_again_leaves_no_call_before_it_open() -> None:
    taken = turn(body(user("u1")), KNOWN, calls=calls("c1"))
    settled, again = opening(taken)
    assert (settled.call_id, again.id, taken.settled) == ("c1", "u1", {settled.id})
