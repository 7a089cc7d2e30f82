"""Stored messages as AG-UI messages, for a reader.

One assistant message is its reasoning messages and one assistant message, in the order in which a live
client got them, and a tool message for each call that the provider ran itself.
"""

from app.agui.content import output_text, result_content, user_content
from app.agui.metadata import authorship, message_metadata
from app.conversation.blocks import Text, Thinking, ToolCall
from app.conversation.messages import Message, Role
from app.conversation.views import for_reader, reader_sees, reader_text

WireMessage = dict[str, object]

_OUTPUT = ":output:"


def wire_messages(message: Message, *, legacy: bool = False) -> list[WireMessage]:
    """Nothing for a message that no reader sees."""
    if not reader_sees(message):
        return []
    shown = for_reader(message)
    if shown.role is Role.ASSISTANT:
        return _assistant(shown)
    return [_result(shown, legacy) if shown.role is Role.TOOL_RESULT else _user(shown, legacy)]


def server_outputs(message: Message) -> list[WireMessage]:
    """Tool messages for the calls that the provider ran itself, so that no client waits to answer them."""
    calls = [block for block in message.content if isinstance(block, ToolCall) and block.server]
    return [_server_output(message, call, number) for number, call in enumerate(calls)]


def output_owner(message_id: str) -> str | None:
    """The assistant message that such a tool message belongs to, by the id we gave it."""
    owner, mark, number = message_id.rpartition(_OUTPUT)
    return owner if mark and number.isdecimal() else None


def trailing_reasoning(messages: list[WireMessage]) -> int:
    """How many reasoning messages follow the last one that is none."""
    count = 0
    while count < len(messages) and messages[-1 - count]["role"] == "reasoning":
        count += 1
    return count


def _user(message: Message, legacy: bool) -> WireMessage:
    written: WireMessage = {
        "id": message.id,
        "role": "user",
        "content": user_content(message, legacy=legacy),
        "metadata": message_metadata(message),
    }
    return written if message.name is None else {**written, "name": message.name}


def _result(message: Message, legacy: bool) -> WireMessage:
    return {
        "id": message.id,
        "role": "tool",
        "toolCallId": message.call_id,
        "content": result_content(message, legacy=legacy),
        "metadata": message_metadata(message),
    }


def _assistant(message: Message) -> list[WireMessage]:
    """A client puts the assistant message where its first text or call arrived; results go right behind."""
    before: list[WireMessage] = []
    after: list[WireMessage] = []
    begun = False
    for block in message.content:
        if isinstance(block, Thinking):
            (after if begun else before).append(_reasoning(message, block))
        elif isinstance(block, ToolCall) or (isinstance(block, Text) and block.text):
            begun = True
    return [*before, _answer(message), *server_outputs(message), *after]


def _answer(message: Message) -> WireMessage:
    written: WireMessage = {"id": message.id, "role": "assistant"}
    text = reader_text(message)
    calls = [_call(block) for block in message.content if isinstance(block, ToolCall)]
    if text or not calls:
        written["content"] = text
    if calls:
        written["toolCalls"] = calls
    written["metadata"] = message_metadata(message)
    return written


def _call(call: ToolCall) -> WireMessage:
    written: WireMessage = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    return {**written, "encryptedValue": call.encrypted} if call.encrypted else written


def _reasoning(message: Message, block: Thinking) -> WireMessage:
    written: WireMessage = {
        "id": block.id,
        "role": "reasoning",
        "content": block.text,
        "metadata": authorship(block.created_at, message.sender_id),
    }
    return {**written, "encryptedValue": block.encrypted} if block.encrypted else written


def _server_output(message: Message, call: ToolCall, number: int) -> WireMessage:
    metadata = authorship(message.created_at, message.sender_id)
    if call.output is not None and call.output.is_error:
        metadata["isError"] = True
    return {
        "id": f"{message.id}{_OUTPUT}{number}",
        "role": "tool",
        "toolCallId": call.id,
        "content": output_text(call),
        "metadata": metadata,
    }
