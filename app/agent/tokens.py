"""How many tokens something has: as its provider reported, or estimated where nobody counted yet.

An estimate needs no tokenizer and is only good for asking whether much or little is left: 4 tokens for a
message and one for each 4 bytes of what it says. Media count flat, whatever their bytes, and what is opaque
to us counts nothing.
"""

from collections.abc import Iterable

from pydantic import JsonValue
from pydantic_core import to_json

from app.conversation.blocks import Audio, Block, Document, Image, Reminder, Text, Thinking, ToolCall, Video
from app.conversation.messages import Message, Usage

MESSAGE_TOKENS = 4
IMAGE_TOKENS = 1500
FILE_TOKENS = 1000
_BYTES = 4


def reported(usage: Usage | None) -> int:
    """All tokens of one call, those of prompt and answer where the provider gave no sum; 0 for none."""
    if usage is None:
        return 0
    return usage.total_tokens or (usage.input_tokens or 0) + (usage.output_tokens or 0)


def estimate(message: Message) -> int:
    """About how many tokens a model reads of this message."""
    size = sum(_size(block) for block in message.content)
    return MESSAGE_TOKENS + tokens_of(size) + sum(_flat(block) for block in message.content)


def estimate_all(messages: Iterable[Message]) -> int:
    """The same for several."""
    return sum(map(estimate, messages))


def tokens_of(size: int) -> int:
    """About how many tokens so many bytes of text make."""
    return -(-size // _BYTES)


def bytes_of(text: str) -> int:
    """The size of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _flat(block: Block) -> int:
    if isinstance(block, Image):
        return IMAGE_TOKENS
    return FILE_TOKENS if isinstance(block, Audio | Video | Document) else 0


def _size(block: Block) -> int:
    match block:
        case Text(text=text) | Reminder(text=text) | Thinking(text=text):
            return bytes_of(text)
        case ToolCall():
            return bytes_of(block.name) + bytes_of(block.arguments) + _output_size(block)
        case Image() | Audio() | Video() | Document():
            return 0
        case _:
            return _json_size(block.data)


def _output_size(call: ToolCall) -> int:
    """What the provider is given again of a call that it ran itself."""
    output = call.output
    if output is None:
        return 0
    return _json_size(output.content if output.raw is None else output.raw)


def _json_size(value: JsonValue) -> int:
    if value is None:
        return 0
    return bytes_of(value) if isinstance(value, str) else len(to_json(value))
