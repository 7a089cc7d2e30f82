"""The prompt a provider takes, whatever a history looks like."""

from hypothesis import given
from hypothesis import strategies as st

from app.agent.pairing import is_json_object, paired, result_of, unanswered_calls
from app.conversation.blocks import Text, ToolCall
from app.conversation.messages import (
    Message,
    Role,
    assistant_message,
    tool_result_message,
    user_message,
)

IDS = st.sampled_from(["a", "b", "c"])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["t", "u", ""]),
    arguments=st.sampled_from(["{}", "", '{"x":', '{"x":1}', "null", "[]", '{"x":NaN}']),
    server=st.booleans(),
)
MESSAGES = st.one_of(
    st.builds(user_message, st.just("hi")),
    st.builds(assistant_message, st.lists(st.one_of(CALLS, st.just(Text(text="x"))), max_size=4)),
    st.builds(tool_result_message, IDS, st.just("t"), st.just("r")),
)
HISTORIES = st.lists(MESSAGES, max_size=12)


@given(HISTORIES)
def test_every_call_is_followed_at_once_by_its_results_in_call_order(history: list[Message]) -> None:
    prompt = paired(history)
    expected: list[str] = []
    for message in prompt:
        if message.role is Role.TOOL_RESULT:
            assert expected
            assert message.call_id == expected.pop(0)
        else:
            assert not expected
            expected = [call.id for call in message.tool_calls()]
    assert not expected


@given(HISTORIES)
def test_nothing_else_is_moved_lost_or_changed(history: list[Message]) -> None:
    others = [message for message in history if message.role is not Role.TOOL_RESULT]
    prompt = [message for message in paired(history) if message.role is not Role.TOOL_RESULT]
    assert [message.id for message in prompt] == [message.id for message in others]
    for sent, stored in zip(prompt, others, strict=True):
        if all(call.name and is_json_object(call.arguments) for call in stored.tool_calls()):
            assert sent is stored
        assert all(call.name and is_json_object(call.arguments) for call in sent.tool_calls())
        assert [block.type for block in sent.content] == [block.type for block in stored.content]


@given(HISTORIES)
def test_the_prompt_of_a_prompt_is_itself_and_the_history_stays(history: list[Message]) -> None:
    before = [message.to_json() for message in history]
    prompt = paired(history)
    assert [message.to_json() for message in history] == before
    assert paired(prompt) == prompt == paired(history)


@given(HISTORIES)
def test_unanswered_calls_are_exactly_those_whose_result_has_to_be_made_up(history: list[Message]) -> None:
    ids = {message.id for message in history}
    made_up = [message.call_id for message in paired(history) if message.id not in ids]
    assert [call.id for call in unanswered_calls(history)] == made_up


def test_a_result_that_comes_late_is_brought_to_its_call() -> None:
    called = assistant_message([ToolCall(id="a", name="t"), ToolCall(id="b", name="t")])
    late, early = tool_result_message("a", "t", "A"), tool_result_message("b", "t", "B")
    between = user_message("well?")
    assert paired([called, early, between, late]) == [
        called.model_copy(update={"content": tuple(_sound(called))}), late, early, between,
    ]  # fmt: skip


def _sound(message: Message) -> list[ToolCall]:
    return [call.model_copy(update={"arguments": "{}"}) for call in message.tool_calls()]


def test_a_missing_result_is_an_error_that_claims_nothing() -> None:
    called = assistant_message([ToolCall(id="a", name="delete_files", arguments="{}")])
    _, made_up, _ = paired([called, user_message("go on")])
    assert made_up.is_error
    assert "not executed" in made_up.join_text()
    assert made_up.tool_name == "delete_files"


def test_a_stored_call_without_a_name_has_one_in_the_prompt_and_in_its_result() -> None:
    called = assistant_message([ToolCall(id="a", name="", arguments='{"x":1}')])
    sent, made_up = paired([called])
    assert [call.name for call in sent.tool_calls()] == [made_up.tool_name] == ["unknown"]
    assert sent.tool_calls()[0].arguments == '{"x":1}'
    assert result_of(called.tool_calls()[0], "no", is_error=True).tool_name == "unknown"


def test_an_id_used_twice_keeps_each_result_with_its_own_call() -> None:
    one = assistant_message([ToolCall(id="a", name="t", arguments="{}")])
    two = assistant_message([ToolCall(id="a", name="t", arguments="{}")])
    first, second = tool_result_message("a", "t", "1"), tool_result_message("a", "t", "2")
    history = [one, first, user_message("again"), two, second]
    assert paired(history) == history
