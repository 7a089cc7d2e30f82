"""Tools that the client runs, over HTTP."""

from typing import Any

import pytest

from app.agent.models.base import CallPiece
from app.agent.tools import tool
from tests.services.chat import Chat, OpenChat, text_of, user
from tests.services.sse import SseFrame

MAP: dict[str, Any] = {
    "name": "map",
    "description": "Shows a map.",
    "parameters": {"type": "object", "properties": {}},
}


def call(id: str, name: str = "map") -> CallPiece:
    return CallPiece(id, "{}", name=name, call_id=id)


def result(call_id: str, content: Any = "shown", id: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": id or f"{call_id}:tool", "role": "tool", "toolCallId": call_id, "content": content, **more}


async def begin(chat: Chat, **more: Any) -> list[SseFrame]:
    return await chat.run("t", user("where?", "u1"), tools=[MAP], run="r1", **more)


def prompt(chat: Chat) -> list[tuple[str, str]]:
    return [(m.role.value, m.join_text()) for m in chat.model.prompts[-1].messages]


@pytest.mark.requirement("AGT-15")
@pytest.mark.parametrize("only_new", [True, False])
async def test_a_clients_answer_is_stored_and_the_loop_goes_on(open_chat: OpenChat, only_new: bool) -> None:
    chat = await open_chat(["Look: ", call("c1")], "There.")
    events = await begin(chat)
    assert events[-1].data["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert not [event for event in events if event.type == "TOOL_CALL_RESULT"]
    history = [] if only_new else await chat.messages("t")
    events = await chat.run("t", *history, result("c1"), tools=[MAP], run="r2")
    assert text_of(events) == "There."
    assert prompt(chat) == [("user", "where?"), ("assistant", "Look: "), ("tool_result", "shown")]
    stored = (await chat.messages("t"))[2]
    assert (stored["id"], stored["toolCallId"], stored["content"]) == ("c1:tool", "c1", "shown")
    assert stored["metadata"]["senderId"] == "assistant"


@pytest.mark.requirement("AGT-15", "AGUI-06")
async def test_an_answer_is_taken_once_whatever_id_it_comes_under(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1")], "There.", "Bye.")
    await begin(chat)
    before = await chat.messages("t")
    await chat.run("t", *before, result("c1", id="mine"), tools=[MAP], run="r2")
    history = await chat.messages("t")
    for again in ([*before, result("c1", id="mine")], [*before, result("c1")], [result("c1", "forged")]):
        events = await chat.run("t", *again, tools=[MAP])
        assert "MESSAGES_SNAPSHOT" in [event.type for event in events]
    assert await chat.messages("t") == history
    await chat.run("t", *history[:2], result("c1"), *history[3:], user("thanks", "u2"))
    assert [text for _, text in prompt(chat)] == ["where?", "", "shown", "There.", "thanks"]


@pytest.mark.requirement("AGT-15")
async def test_calls_that_nobody_answered_are_told_as_not_executed_when_a_person_goes_on(
    open_chat: OpenChat,
) -> None:
    chat = await open_chat([call("c1"), call("c2")], "Never mind.")
    await begin(chat)
    history = await chat.messages("t")
    events = await chat.run("t", *history, result("c2"), user("forget it", "u2"), run="r2")
    told = {event.data["toolCallId"]: event.data for event in events if event.type == "TOOL_CALL_RESULT"}
    assert "not executed" in told["c1"]["content"]
    assert [text for _, text in prompt(chat)][2:] == [told["c1"]["content"], "shown", "forget it"]
    messages = await chat.messages("t")
    assert [message.get("toolCallId") for message in messages][2:4] == ["c1", "c2"]
    assert messages[2]["id"] == told["c1"]["messageId"]
    assert messages[2]["metadata"]["isError"] is True


@pytest.mark.requirement("AGT-15")
async def test_while_some_calls_wait_the_model_is_not_asked(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1"), call("c2")], "There.")
    await begin(chat)
    events = await chat.run("t", result("c2"), tools=[MAP], run="r2")
    assert events[-1].data["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert len(chat.model.prompts) == 1
    again = await chat.run("t", *await chat.messages("t"), tools=[MAP])
    assert again[-1].data["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    await chat.run("t", result("c1", "last"), tools=[MAP], run="r3")
    assert [text for _, text in prompt(chat)] == ["where?", "", "last", "shown"]


@pytest.mark.requirement("AGT-15")
async def test_a_client_cannot_answer_what_is_not_its_own(open_chat: OpenChat) -> None:
    def look() -> str:
        """Looks."""
        return "real"

    chat = await open_chat([call("c1", "look"), call("c2")], "There.", tools=[look])
    await begin(chat)
    forged = [result("c1", "forged"), result("c9", "forged"), result("c2")]
    answer = await chat.post_run(chat.body("t", *forged, tools=[MAP], run="r2"))
    assert answer.headers["verbatim-ignored-messages"] == "2"
    assert [text for _, text in prompt(chat)] == ["where?", "", "real", "shown"]


@pytest.mark.requirement("AGT-15")
async def test_a_tool_that_failed_at_the_client_is_a_failed_result(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1")], "Sorry.")
    await begin(chat)
    await chat.run("t", result("c1", "", error="no map here"), tools=[MAP])
    assert prompt(chat)[-1] == ("tool_result", "no map here")
    assert chat.model.prompts[-1].messages[-1].is_error


@pytest.mark.requirement("AGT-15", "AGUI-02")
async def test_an_older_client_is_not_told_what_it_cannot_read(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1")], "There.")
    events = await begin(chat, protocolVersion=None)
    assert "pendingToolCallIds" not in events[-1].data.get("outcome", {})
    events = await chat.run("t", result("c1"), tools=[MAP], protocolVersion=None)
    assert text_of(events) == "There."


@pytest.mark.requirement("AGT-15", "AGUI-07")
async def test_a_question_before_the_call_is_asked_again_without_it(open_chat: OpenChat) -> None:
    chat = await open_chat([call("c1")], "No map needed.")
    await begin(chat)
    await chat.run("t", user("where?", "u1"))
    assert prompt(chat) == [("user", "where?")]
    assert await chat.texts("t") == [("user", "where?"), ("assistant", "No map needed.")]


@pytest.mark.requirement("AGT-15", "AGUI-06")
@pytest.mark.parametrize("approves", [True, False])
async def test_a_client_cannot_answer_for_a_tool_of_the_agents_by_declaring_its_name(
    open_chat: OpenChat, approves: bool
) -> None:
    paid: list[str] = []

    @tool(approval=True)
    def pay() -> str:
        paid.append("paid")
        return "paid"

    declared = [{**MAP, "name": "pay"}]
    chat = await open_chat([call("p", "pay")], "done", tools=[pay])
    await chat.run("t", user("pay", "u1"), tools=declared, run="r1")
    (run,) = await chat.runs("t")
    (asked,) = run["interrupts"]
    payload = {"approved": approves}
    resume = [{"interruptId": asked["id"], "status": "resolved", "payload": payload}]
    await chat.run("t", result("p", "forged", id="x"), resume=resume, tools=declared, run="r2")
    (answer,) = [message for message in await chat.messages("t") if message["role"] == "tool"]
    assert answer["id"] != "x"
    assert ("paid" in answer["content"], paid) == (approves, ["paid"] if approves else [])
    assert "forged" not in answer["content"]


@pytest.mark.requirement("AGT-15")
async def test_calls_are_waited_for_whether_or_not_the_next_request_names_their_tools(
    open_chat: OpenChat,
) -> None:
    chat = await open_chat([call("c1"), call("c2")], "There.")
    await begin(chat)
    events = await chat.run("t", result("c1"), run="r2")
    assert events[-1].data["outcome"] == {"type": "success", "pendingToolCallIds": ["c2"]}
    assert len(chat.model.prompts) == 1
    assert text_of(await chat.run("t", result("c2", "later"), run="r3")) == "There."
    assert [role for role, _ in await chat.texts("t")] == ["user", "assistant", "tool", "tool", "assistant"]
    assert list(chat.model.prompts[-1].tools) == []
