"""Words survive JSON both ways."""

import json
from typing import Any, get_args

import pytest
from hypothesis import example, given
from pydantic import TypeAdapter

from app.conversation.blocks import (
    KNOWN,
    Block,
    Reminder,
    ServerToolOutput,
    Text,
    Thinking,
    ToolCall,
    Unknown,
)
from app.conversation.messages import Injected, Message, assistant_message, user_message
from tests.conversation import strategies

BLOCK: TypeAdapter[Block] = TypeAdapter(Block)
ORDINARY = {"id", "role", "content", "createdAt"}


def _read(document: dict[str, Any]) -> Message:
    return Message.model_validate_json(json.dumps(document))


@pytest.mark.requirement("MSG-01", "MSG-04")
@given(strategies.messages)
@example(user_message([Text(text="\x00\u2028\ufffe𐀀\U0010ffff"), Text(text="")], metadata={"": None}))
def test_any_message_comes_back_equal_from_its_json(message: Message):
    spelled = message.to_json()
    again = Message.model_validate_json(spelled)
    assert again == message
    assert again.to_json() == spelled


@pytest.mark.requirement("MSG-04")
@given(strategies.blocks)
def test_any_block_carries_its_type_and_comes_back_as_the_same_kind(block: Block):
    written = json.loads(block.to_json())
    assert written["type"] == block.type
    again = BLOCK.validate_python(written)
    assert type(again) is type(block)
    assert again == block


@pytest.mark.requirement("MSG-04")
@given(strategies.unknowns)
def test_a_block_of_an_unknown_type_is_kept_member_for_member(block: Unknown):
    came = block.data
    message = _read({"id": "m", "role": "user", "content": [came]})
    assert isinstance(message.content[0], Unknown)
    assert json.loads(message.to_json())["content"] == [came]


@pytest.mark.requirement("MSG-04")
@pytest.mark.parametrize(
    "came",
    [
        {"type": "citation", "data": {"type": "text", "text": "not a text"}, "text": "nor here"},
        {"type": "Text", "text": "another type than text"},
        {"type": None, "text": "no type at all"},
        {"text": "a member is missing"},
        {"type": ["text"], "text": "a list is no type"},
    ],
)
def test_an_odd_type_is_neither_misread_nor_dropped(came: dict[str, Any]):
    message = _read({"id": "m", "role": "assistant", "content": [came]})
    assert message.text() == []
    assert json.loads(message.to_json())["content"] == [came]


@pytest.mark.requirement("MSG-04")
def test_every_block_type_is_told_apart_by_its_own_discriminator():
    kinds = [get_args(member)[0] for member in get_args(get_args(Block)[0])]
    discriminators = {kind.model_fields["type"].default for kind in kinds if kind is not Unknown}
    assert discriminators == KNOWN


@pytest.mark.requirement("MSG-04")
def test_members_that_a_later_version_added_to_a_known_block_are_kept():
    came = {"type": "text", "text": "hi", "later": {"deep": [1, None]}}
    message = _read({"id": "m", "role": "user", "content": [came], "alsoLater": 1})
    written = json.loads(message.to_json())
    assert written["content"] == [came]
    assert written["alsoLater"] == 1


@pytest.mark.requirement("MSG-04")
def test_thinking_keeps_its_own_id_signature_and_encrypted_value():
    thought = Thinking(id="think_1", text="hm", signature="c2ln", encrypted="ZW5j", created_at=5)
    written = json.loads(thought.to_json())
    assert written == {
        "type": "thinking",
        "id": "think_1",
        "text": "hm",
        "signature": "c2ln",
        "encrypted": "ZW5j",
        "createdAt": "1970-01-01T00:00:00.000000005Z",
    }


@pytest.mark.requirement("MSG-12")
@given(strategies.plain_texts)
def test_an_ordinary_message_writes_no_key_that_says_nothing(text: Text):
    assert json.loads(user_message([text]).to_json()).keys() == ORDINARY
    assert json.loads(assistant_message([text]).to_json()).keys() == ORDINARY | {"stopReason"}


@pytest.mark.requirement("MSG-12")
@given(strategies.messages)
def test_injected_and_origin_are_written_exactly_when_they_say_something(message: Message):
    written = json.loads(message.to_json())
    assert ("injected" in written) == (message.injected is not Injected.NONE)
    assert ("origin" in written) == (message.origin != "")
    assert None not in written.values()


@pytest.mark.requirement("MSG-05")
@given(strategies.messages, strategies.texts)
def test_any_origin_comes_back_as_it_was(message: Message, origin: str):
    named = message.model_copy(update={"origin": origin, "injected": Injected.META})
    assert Message.model_validate_json(named.to_json()).origin == origin


@pytest.mark.requirement("MSG-05", "MSG-04")
@given(strategies.texts, strategies.texts)
def test_a_reminder_keeps_its_text_and_origin(text: str, origin: str):
    again = BLOCK.validate_json(Reminder(text=text, origin=origin).to_json())
    assert again == Reminder(text=text, origin=origin)


@pytest.mark.requirement("MSG-14")
@given(strategies.json_values, strategies.json_values)
def test_a_call_that_the_provider_ran_keeps_its_flag_type_and_output(content: Any, raw: Any):
    output = ServerToolOutput(content=content, raw=raw, is_error=True)
    call = ToolCall(id="c", name="search", server=True, server_type="web_search", output=output)
    message = assistant_message([call])
    block = json.loads(message.to_json())["content"][0]
    assert block["server"] is True
    assert block["serverType"] == "web_search"
    assert block["output"].get("content") == content
    assert block["output"].get("raw") == raw
    assert block["output"]["isError"] is True
    assert Message.model_validate_json(message.to_json()).content == (call,)


@pytest.mark.requirement("MSG-14")
def test_only_calls_that_are_ours_to_run_are_run():
    theirs = ToolCall(id="s", name="search", server=True)
    ours = ToolCall(id="o", name="add")
    assert assistant_message([theirs, ours]).tool_calls() == [ours]
