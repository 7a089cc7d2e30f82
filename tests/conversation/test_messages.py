"""One message type with three roles, and the ways to make one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.conversation.blocks import Block, Reminder, Text, ToolCall
from app.conversation.messages import (
    Content,
    Injected,
    Message,
    Role,
    StopReason,
    Usage,
    assistant_message,
    tool_result_message,
    user_message,
)
from tests.conversation import strategies

ASSISTANT_ONLY: dict[str, Any] = {
    "provider": "openai",
    "model": "gpt",
    "response_id": "r",
    "usage": Usage(input_tokens=1),
    "stop_reason": StopReason.STOP,
}
TOOL_ONLY: dict[str, Any] = {"call_id": "c", "tool_name": "add", "is_error": True}


class Noon:
    """A clock that stands still."""

    def now(self) -> int:
        return 1_700_000_000_123_456_789


def _result(content: Content, **rest: Any) -> Message:
    return tool_result_message("c", "add", content, **rest)


MAKERS: dict[Role, Callable[..., Message]] = {
    Role.USER: user_message,
    Role.ASSISTANT: assistant_message,
    Role.TOOL_RESULT: _result,
}


@pytest.mark.requirement("MSG-01")
def test_there_are_exactly_three_roles_and_one_type():
    assert {role.value for role in Role} == {"user", "assistant", "tool_result"}
    assert {type(make("x")) for make in MAKERS.values()} == {Message}
    with pytest.raises(ValidationError, match="role"):
        Message.model_validate({"id": "m", "role": "system", "content": []})


@pytest.mark.requirement("MSG-01", "MSG-02")
@pytest.mark.parametrize("name", ASSISTANT_ONLY)
@pytest.mark.parametrize("role", [Role.USER, Role.TOOL_RESULT])
def test_what_only_a_model_has_is_refused_on_other_roles(role: Role, name: str):
    fields = {"call_id": "c", "tool_name": "add"} if role is Role.TOOL_RESULT else {}
    with pytest.raises(ValidationError, match=name):
        Message(id="m", role=role, content=(), **fields, **{name: ASSISTANT_ONLY[name]})


@pytest.mark.requirement("MSG-01", "MSG-03")
@pytest.mark.parametrize("name", TOOL_ONLY)
@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_what_only_a_tool_result_has_is_refused_on_other_roles(role: Role, name: str):
    with pytest.raises(ValidationError, match=name):
        Message(id="m", role=role, content=(), **{name: TOOL_ONLY[name]})


@pytest.mark.requirement("MSG-01")
@pytest.mark.parametrize("role", [Role.USER, Role.TOOL_RESULT])
def test_only_an_assistant_calls_tools(role: Role):
    with pytest.raises(ValidationError, match="tool calls"):
        MAKERS[role]([ToolCall(id="c", name="add")])


@pytest.mark.requirement("MSG-02")
def test_an_assistant_message_tells_who_answered_and_what_it_cost():
    usage = Usage(input_tokens=3, output_tokens=0, cached_input_tokens=2)
    message = assistant_message("hi", provider="openai", model="gpt", response_id="r_1", usage=usage)
    again = Message.model_validate_json(message.to_json())
    assert (again.provider, again.model, again.response_id) == ("openai", "gpt", "r_1")
    assert again.usage == usage
    assert again.usage is not None
    assert again.usage.reasoning_tokens is None


@pytest.mark.requirement("MSG-02")
@given(strategies.usages, strategies.usages)
def test_tokens_add_up_and_what_nobody_reported_stays_unknown(one: Usage, other: Usage):
    total = one + other
    for name in Usage.model_fields:
        parts = [part for part in (getattr(one, name), getattr(other, name)) if part is not None]
        assert getattr(total, name) == (sum(parts) if parts else None)


@pytest.mark.requirement("MSG-03")
@pytest.mark.parametrize("failed", [False, True])
def test_a_tool_result_names_its_call_its_tool_and_whether_it_failed(failed: bool):
    message = tool_result_message("call_7", "add", "3", is_error=failed)
    again = Message.model_validate_json(message.to_json())
    assert (again.call_id, again.tool_name, again.is_error) == ("call_7", "add", failed)


@pytest.mark.requirement("MSG-03")
@pytest.mark.parametrize(("call_id", "tool_name"), [("", "add"), ("c", ""), (None, "add"), ("c", None)])
def test_a_tool_result_without_a_call_or_a_tool_is_refused(call_id: str | None, tool_name: str | None):
    with pytest.raises(ValidationError, match="names the call and the tool"):
        Message(id="m", role=Role.TOOL_RESULT, content=(), call_id=call_id, tool_name=tool_name)


@pytest.mark.requirement("MSG-05")
@pytest.mark.parametrize("role", Role)
def test_a_message_is_nobodys_injection_unless_it_says_so(role: Role):
    message = MAKERS[role]("x")
    assert message.injected is Injected.NONE
    assert message.origin == ""
    assert {kind.value for kind in Injected} == {"none", "meta", "ephemeral"}


@pytest.mark.requirement("MSG-10")
@pytest.mark.parametrize("role", Role)
def test_a_constructor_sets_the_role_an_id_and_the_time(role: Role):
    one, other = MAKERS[role]("x", clock=Noon()), MAKERS[role]("x")
    assert one.role is role
    assert one.created_at == Noon().now()
    assert other.created_at is not None
    assert one.id != other.id
    assert MAKERS[role]("x", id="mine").id == "mine"


@pytest.mark.requirement("MSG-10")
@pytest.mark.parametrize("role", Role)
def test_a_constructor_takes_a_string_or_blocks(role: Role):
    assert MAKERS[role]("hi").content == (Text(text="hi"),)
    assert MAKERS[role]([Text(text="a"), Reminder(text="b")]).content == (Text(text="a"), Reminder(text="b"))
    assert MAKERS[role]("").content == ()


@pytest.mark.requirement("MSG-08")
@given(strategies.messages)
def test_text_gives_the_text_and_reminder_blocks_as_they_stand(message: Message):
    def carries_text(block: Block) -> bool:
        return isinstance(block, Text | Reminder)

    given_back = message.text()
    expected = [block for block in message.content if carries_text(block)]
    assert len(given_back) == len(expected)
    assert all(one is other for one, other in zip(given_back, expected, strict=True))


@pytest.mark.requirement("MSG-08")
@given(strategies.messages, strategies.texts)
def test_join_text_joins_exactly_those(message: Message, separator: str):
    assert message.join_text(separator) == separator.join(block.text for block in message.text())


@pytest.mark.requirement("MSG-01")
@given(st.data())
def test_a_message_cannot_be_changed(data: st.DataObject):
    message = data.draw(strategies.messages)
    name = data.draw(st.sampled_from(sorted(Message.model_fields)))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(message, name, None)


@pytest.mark.requirement("MSG-11")
def test_a_model_stops_for_one_of_five_reasons():
    assert {reason.value for reason in StopReason} == {"stop", "length", "tool_use", "error", "aborted"}
    for reason in StopReason:
        message = assistant_message("x", stop_reason=reason)
        assert Message.model_validate_json(message.to_json()).stop_reason is reason
