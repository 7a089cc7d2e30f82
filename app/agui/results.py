"""The result of a tool call on the wire."""

from app.agui.brackets import Brackets, Members
from app.agui.content import result_content
from app.agui.metadata import message_metadata
from app.agui.variants import variants
from app.conversation.messages import Message
from app.frames import Frame


def result_frame(message: Message, brackets: Brackets) -> Frame:
    """TOOL_CALL_RESULT of a message that a reader sees. 0.x clients get the text of one that holds media."""
    result: Members = {
        "messageId": message.id,
        "toolCallId": message.call_id,
        "role": "tool",
        "metadata": message_metadata(message),
    }
    return variants(
        "TOOL_CALL_RESULT",
        {**result, "content": result_content(message)},
        {**result, "content": result_content(message, legacy=True)},
        brackets,
    )
