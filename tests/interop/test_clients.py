"""The released AG-UI clients of both generations talk to the server and find nothing wrong."""

from typing import Any

import pytest

from tests.interop.conftest import CURRENT, OLDER, Drive

pytestmark = pytest.mark.requirement("AGUI-01", "AGUI-02", "AGUI-03", "AGUI-04", "AGUI-05")
both_generations = pytest.mark.parametrize("client", [CURRENT, OLDER])


def _problems(turn: dict[str, Any]) -> dict[str, list[str]]:
    return {kind: found for kind, found in turn["problems"].items() if found}


def _texts(turn: dict[str, Any], role: str) -> list[str]:
    messages = [message for message in turn["live"] if message["role"] == role]
    return [message["content"] for message in messages if "content" in message]


@both_generations
async def test_text_arrives_whole_and_history_equals_what_the_client_holds(drive: Drive, client: str):
    turns = await drive(client, "text", [{"say": "Hello"}, {"say": "Again"}])
    assert [_problems(turn) for turn in turns] == [{}, {}]
    assert [turn["outcome"] for turn in turns] == [{"finished": "success"}] * 2
    assert _texts(turns[-1], "assistant") == ["Good day, 世界 \U0001f600\u2028", "And again."]
    assert _texts(turns[-1], "user") == ["Hello", "Again"]


@both_generations
async def test_reasoning_parallel_calls_and_their_results_keep_their_grouping(drive: Drive, client: str):
    turns = await drive(client, "tool", [{"say": "Add them"}, {"say": "Thanks"}])
    assert [_problems(turn) for turn in turns] == [{}, {}]
    roles = [message["role"] for message in turns[0]["live"]]
    assert roles == ["user", "reasoning", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    calls = [call["id"] for message in turns[0]["live"] for call in message.get("toolCalls", [])]
    answered = [message["toolCallId"] for message in turns[0]["live"] if message["role"] == "tool"]
    assert calls == answered
    assert len(set(calls)) == 3
    assert _texts(turns[0], "tool")[0] == "3"
    assert _texts(turns[1], "assistant")[-1] == "You are welcome."


@both_generations
async def test_a_message_of_calls_alone_has_no_content(drive: Drive, client: str):
    turns = await drive(client, "calls alone", [{"say": "Add them"}])
    assert _problems(turns[0]) == {}
    calling = turns[0]["live"][1]
    assert "content" not in calling
    assert [call["function"]["name"] for call in calling["toolCalls"]] == ["add", "add"]
    assert _texts(turns[0], "tool") == ["3", "7"]


@both_generations
@pytest.mark.parametrize(("script", "kept"), [("failing", ["So far so good"]), ("failing at once", [])])
async def test_a_failed_run_ends_in_order_and_the_thread_goes_on(
    drive: Drive, client: str, script: str, kept: list[str]
):
    turns = await drive(client, script, [{"say": "Try"}, {"say": "Once more"}])
    assert [_problems(turn) for turn in turns] == [{}, {}]
    error = turns[0]["outcome"]["error"]
    assert error["code"] == "MODEL_ERROR"
    assert "The model failed to answer" in error["message"]
    assert turns[1]["outcome"] == {"finished": "success"}
    assert _texts(turns[1], "assistant") == [*kept, "Better now."]


@both_generations
async def test_a_stopped_run_is_cancelled_for_those_who_know_the_word(drive: Drive, client: str):
    turns = await drive(client, "stopped", [{"say": "Take your time", "stop": True}, {"say": "Go on"}])
    assert [_problems(turn) for turn in turns] == [{}, {}]
    told = turns[0]["outcome"]["finished"]
    assert told == ("cancelled" if client == CURRENT else "success")
    assert _texts(turns[1], "assistant") == ["This takes ", "Where were we?"]


async def test_only_the_newer_client_says_which_protocol_it_speaks(drive: Drive):
    sent = [(await drive(client, "text", [{"say": "Hello"}]))[0]["sent"] for client in (CURRENT, OLDER)]
    assert [request.get("protocolVersion") for request in sent] == ["1.0", None]


@both_generations
@pytest.mark.requirement("AGUI-08", "AGUI-13", "AGUI-18", "AGT-11", "AGT-12")
async def test_what_a_tool_does_beside_its_result_is_held_or_gone_as_it_should_be(drive: Drive, client: str):
    (turn,) = await drive(client, "beside", [{"say": "Work"}])
    assert _problems(turn) == {}
    activities = [message for message in turn["live"] if message["role"] == "activity"]
    assert [one["content"] for one in activities] == [{"text": "kept", "nothing": None}, {"value": "bare"}]
    assert activities[0]["metadata"]["senderId"] == "assistant"
    names = [event["name"] for event in turn["found"] if event["type"] == "CUSTOM"]
    assert sorted(names) == ["flash", "tool_progress"]
    assert turn["types"].count("STATE_DELTA") == 2
    agents = [kind for kind in turn["types"] if kind.startswith("SUBAGENT")]
    assert agents == (["SUBAGENT_STARTED", "SUBAGENT_FINISHED"] if client == CURRENT else [])
    assert sorted(_texts(turn, "tool")) == ["Helped.", "worked"]


@both_generations
@pytest.mark.requirement("AGUI-08", "AGUI-09")
async def test_a_question_reaches_the_client_and_its_answer_the_call(drive: Drive, client: str):
    turns = await drive(
        client, "asking", [{"say": "Send it"}, {"resume": {"approved": True}}, {"say": "Thanks"}]
    )
    assert [_problems(turn) for turn in turns] == [{}, {}, {}]
    assert turns[0]["outcome"] == {"finished": "interrupt"}
    assert turns[0]["types"][-3:] == ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    (asked,) = turns[0]["interrupts"]
    assert (asked["reason"], asked["toolCallId"]) == ("tool_call", "call_b")
    assert asked["responseSchema"]["properties"]["editedArgs"]["properties"]["to"] == {"type": "string"}
    assert not {"memory", "child"} & asked.keys()
    assert (turns[1]["interrupts"], _texts(turns[1], "tool")) == ([], ["3", "sent to ann"])
    assert "TOOL_CALL_START" not in turns[1]["types"]


@both_generations
@pytest.mark.requirement("AGUI-08", "AGUI-09", "AGUI-13", "AGT-16")
async def test_an_agent_below_asks_through_the_client_and_goes_on_where_it_was(drive: Drive, client: str):
    turns = await drive(
        client, "asking below", [{"say": "Deliver"}, {"resume": {"approved": True}}, {"say": "Thanks"}]
    )
    assert [_problems(turn) for turn in turns] == [{}, {}, {}]
    (asked,) = turns[0]["interrupts"]
    agents = [
        [event for event in turn["found"] if event["type"].startswith("SUBAGENT")] for turn in turns[:2]
    ]
    if client == CURRENT:
        begun, suspended = agents[0]
        assert begun["parentToolCallId"] == "call_a"
        assert suspended["outcome"] == {"type": "suspended", "interruptIds": [asked["id"]]}
        assert agents[1][-1]["outcome"] == {"type": "success"}
    else:
        assert agents == [[], []]
    assert _texts(turns[1], "tool") == ["Delivered."]
    reasoning = next(message for message in turns[2]["live"] if message["role"] == "reasoning")
    assert reasoning["metadata"]["senderId"] == "assistant"
    assert reasoning["encryptedValue"] == "c2VhbA=="


@both_generations
@pytest.mark.requirement("AGUI-09", "AGT-14")
async def test_arguments_that_a_person_edited_in_a_client_are_used(drive: Drive, client: str):
    resume = {"approved": True, "editedArgs": {"to": "bob"}}
    _, turn = await drive(client, "asking", [{"say": "Send it"}, {"resume": resume}])
    assert _problems(turn) == {}
    assert _texts(turn, "tool") == ["3", "sent to bob"]


@both_generations
@pytest.mark.requirement("AGUI-07")
async def test_a_list_cut_behind_a_persons_message_asks_for_another_answer(drive: Drive, client: str):
    first, again = await drive(client, "text", [{"say": "Hello"}, {"keep": 1}])
    assert (_problems(first), _problems(again)) == ({}, {})
    assert _texts(again, "assistant") == ["And again."]
    assert _texts(again, "user") == ["Hello"]


@both_generations
@pytest.mark.requirement("AGUI-07")
async def test_a_list_that_goes_on_from_earlier_begins_a_branch_there(drive: Drive, client: str):
    turns = await drive(client, "branches", [{"say": "one"}, {"say": "two"}, {"keep": 2, "say": "other two"}])
    assert [_problems(turn) for turn in turns] == [{}, {}, {}]
    assert _texts(turns[-1], "user") == ["one", "other two"]
    assert _texts(turns[-1], "assistant") == ["First.", "Third."]


@both_generations
@pytest.mark.requirement("AGUI-08", "AGUI-09")
async def test_words_beside_an_answer_stand_behind_the_result(drive: Drive, client: str):
    asked, told = await drive(
        client, "asking", [{"say": "Send it"}, {"say": "Be quick", "resume": {"approved": False}}]
    )
    assert [_problems(asked), _problems(told)] == [{}, {}]
    assert [message["role"] for message in told["live"]][-4:] == ["tool", "tool", "user", "assistant"]


@both_generations
@pytest.mark.requirement("AGUI-05", "AGUI-08", "AGT-15")
async def test_a_client_runs_its_own_tool_and_the_turn_goes_on(drive: Drive, client: str):
    tool: dict[str, Any] = {
        "name": "map",
        "description": "Shows a map.",
        "parameters": {"type": "object", "properties": {}},
    }
    first, second = await drive(
        client, "client tools", [{"say": "Where?", "tools": [tool]}, {"answer": "shown", "tools": [tool]}]
    )
    assert [_problems(first), _problems(second)] == [{}, {}]
    assert first["outcome"] == {"finished": "success"}
    pending = {"type": "success", "pendingToolCallIds": ["call_a"]} if client == CURRENT else None
    assert first["found"][-1].get("outcome") == pending
    assert _texts(second, "assistant") == ["There it is."]
    answered = next(message for message in second["live"] if message["role"] == "tool")
    assert answered["metadata"]["senderId"] == "assistant"
    assert (first["types"].count("TOOL_CALL_RESULT"), second["types"].count("TOOL_CALL_RESULT")) == (0, 0)
