"""A history as plain text, for a model that is to sum it up: nothing that the model was told is left out.

Each block is one line that begins with who speaks. Further lines of it are indented, so that no text can pass
for another speaker.
"""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from app.agent.pairing import NAMELESS
from app.agent.tokens import bytes_of, tokens_of
from app.conversation.blocks import (
    Audio,
    Document,
    Image,
    Media,
    Reminder,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    UrlSource,
    Video,
)
from app.conversation.messages import Message, Role
from app.conversation.views import reader_sees, store_keeps

NOTE = "Note"
PASSING_NOTE = "Passing note"
EARLIER = "Summary so far"
_LEFT_OUT = "\n[… {count} characters left out …]\n"


def lines_of(message: Message, *, text_characters: int, result_characters: int) -> Iterator[str]:
    """What the message says, a line a block.

    Of what a tool took or gave at most `result_characters` are shown, of other text `text_characters`; the
    middle of what is longer is left out. Reasoning is no part of it; media are named with their address.
    """
    note = _note(message)
    for block in message.content:
        match block:
            case Text(text=text) if message.role is not Role.TOOL_RESULT:
                yield _line(_speaker(message), clipped(text, text_characters))
            case Reminder(text=text):
                yield _line(note, clipped(text, text_characters))
            case Thinking():
                pass
            case ToolCall():
                yield from _call(block, result_characters)
            case _:
                yield _line(_speaker(message), clipped(_words(block), result_characters))
    if not message.content and message.role is Role.TOOL_RESULT:
        yield _line(_speaker(message), "(nothing)")


def parts_of(lines: Sequence[str], tokens: int) -> Iterator[str]:
    """The lines, joined to texts of about so many tokens at most, but of at least one line each."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        more = tokens_of(bytes_of(line) + 1)
        if waiting and size + more > tokens:
            yield "\n".join(waiting)
            waiting, size = [], 0
        waiting.append(line)
        size += more
    if waiting:
        yield "\n".join(waiting)


def clipped(text: str, most: int) -> str:
    """The text, or its two ends with a note of how much of the middle is left out."""
    if len(text) <= most:
        return text
    head, tail = most - most // 2, most // 2
    return text[:head] + _LEFT_OUT.format(count=len(text) - most) + (text[-tail:] if tail else "")


def earlier_line(text: str) -> str:
    """The line of the summary that came before."""
    return _line(EARLIER, text)


def _line(speaker: str, text: str) -> str:
    return f"{speaker}: " + "\n  ".join(text.splitlines())


def _note(message: Message) -> str:
    return NOTE if store_keeps(message) else PASSING_NOTE


def _speaker(message: Message) -> str:
    if message.role is Role.TOOL_RESULT:
        return f"{'Error' if message.is_error else 'Result'} of {_one_line(message.tool_name or NAMELESS)}"
    if not reader_sees(message):
        return _note(message)
    return "User" if message.role is Role.USER else "Assistant"


def _call(call: ToolCall, most: int) -> Iterator[str]:
    name = _one_line(call.name or NAMELESS)
    yield _line("Assistant calls", f"{name}({clipped(call.arguments, most)})")
    if call.output is not None:
        kind = "Error" if call.output.is_error else "Result"
        value = call.output.raw if call.output.content is None else call.output.content
        yield _line(f"{kind} of {name}", clipped(_json(value), most))


def _words(block: Text | Media | Unknown) -> str:
    match block:
        case Text(text=text):
            return text
        case Image() | Audio() | Video() | Document():
            where = f" {block.source.value}" if isinstance(block.source, UrlSource) else ""
            return f"[{block.type}{'' if where.startswith(' data:') else where}]"
        case _:
            return _json(block.data)


def _json(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _one_line(name: str) -> str:
    return " ".join(name.split())
