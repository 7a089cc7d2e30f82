"""What the demo model says: plain words in, a reply out. The same prompt always gives the same reply."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.agent.models.base import CallPiece, ModelError, ModelEvent, TextPiece, ThinkingPiece
from app.agent.models.demo_calls import calls_for
from app.agent.models.demo_objects import object_for
from app.agent.prompt import Prompt
from app.conversation.messages import Message, Role
from app.conversation.views import reader_text

_WORD = re.compile(r"\s*\S+\s*")

GREETING = """Hello! I am Verbatim's demo model: no key and no service behind me, only a few tricks.

Whatever we say is stored word for word, so close this page, restart the server, and find it again. Try one:

- What time is it in Tokyo, and what is 6 * 7? (two tools at once)
- Roll 3 dice (another tool)
- Think about the weather (reasoning before the answer)
- Tell me slowly (time enough to press stop, or to reload and rejoin)
- long 500 (a long answer)
- fail, or fail halfway (what an error looks like)
- What did I say before? (I remember this thread)"""
ABOUT = (
    "Verbatim keeps every conversation word for word and runs every answer on the server: you may leave in "
    "the middle of one and come back to it. What was said is never rewritten; what you see is a view of it."
)
NO_WEATHER = "I have no weather tool here. Give your agent one, name it `get_weather`, and ask me again."
FAILED_FIRST = "The demo model failed, as it was asked to."
FAILED_HALFWAY = "The demo model failed halfway, as it was asked to."


@dataclass(frozen=True, slots=True)
class Reply:
    """The pieces of one response. `error` is raised behind them; `slow` asks for pauses between them."""

    pieces: Iterator[ModelEvent]
    calls: bool = False
    error: ModelError | None = None
    slow: bool = False


def reply_to(prompt: Prompt) -> Reply:
    """What to say to the last thing in the prompt."""
    results = _last_results(prompt.messages)
    if results and prompt.output is None:
        return Reply(_text(_report(results)))
    asked = [text for message in prompt.messages if message.role is Role.USER and (text := _asked(message))]
    text = asked[-1] if asked else ""
    if _says(text, "fail|fails"):
        return _failure(text)
    thoughts = _thoughts(text) if _says(text, "think|thinking|reason|reasoning") else iter(())
    calls = [] if results else calls_for(text, prompt.tools)
    if calls:
        return Reply(_chain(thoughts, _calls(calls)), calls=True)
    if prompt.output is not None:
        return Reply(_chain(thoughts, _text(object_for(text, prompt.output))))
    return Reply(_chain(thoughts, _answer(text, asked)), slow=_says(text, "slow|slowly"))


def _asked(message: Message) -> str:
    """What a person wrote, and which media came with it."""
    kinds = [block.type for block in message.content if block.type in ("image", "audio", "video", "document")]
    return " ".join([reader_text(message).strip(), *(f"[{kind}]" for kind in kinds)]).strip()


def _last_results(messages: Sequence[Message]) -> list[Message]:
    results: list[Message] = []
    for message in reversed(messages):
        if message.role is not Role.TOOL_RESULT:
            break
        results.append(message)
    return results[::-1]


def _report(results: Sequence[Message]) -> str:
    lines = [
        f"- {result.tool_name}{' failed' if result.is_error else ''}: {reader_text(result)}"
        for result in results
    ]
    return "Here is what I found:\n\n" + "\n".join(lines)


def _failure(text: str) -> Reply:
    if _says(text, "halfway|half"):
        return Reply(_text("This answer begins well, and then"), error=ModelError(FAILED_HALFWAY))
    return Reply(iter(()), error=ModelError(FAILED_FIRST))


def _answer(text: str, asked: Sequence[str]) -> Iterator[ModelEvent]:
    if long := re.search(r"\blong\s+(\d{1,6})\b", text, re.IGNORECASE):
        return (TextPiece(f"{number} ") for number in range(1, int(long[1]) + 1))
    return _text(_words_for(text, asked))


def _words_for(text: str, asked: Sequence[str]) -> str:
    if re.search(r"\bwhat did i (say|write|tell)\b", text, re.IGNORECASE):
        before = asked[:-1]
        return "You said:\n\n" + "\n".join(f"- {line}" for line in before) if before else "Nothing yet."
    if not text or _says(text, "hello|hi|hey|help"):
        return GREETING
    if _says(text, "weather"):
        return NO_WEATHER
    if _says(text, "slow|slowly|verbatim|product"):
        return ABOUT
    return f"You said: {text}"


def _thoughts(text: str) -> Iterator[ModelEvent]:
    question = text.rstrip(".")
    said = f"The question is: {question}. I look at what I was told, then at my tools, and then I answer."
    return (ThinkingPiece(word) for word in _split(said))


def _text(words: str) -> Iterator[ModelEvent]:
    return (TextPiece(word) for word in _split(words))


def _calls(calls: Sequence[tuple[str, object]]) -> Iterator[ModelEvent]:
    for number, (name, arguments) in enumerate(calls):
        written = json.dumps(arguments, ensure_ascii=False)
        middle = len(written) // 2
        yield CallPiece(str(number), written[:middle], name=name)
        yield CallPiece(str(number), written[middle:])


def _split(words: str) -> Iterator[str]:
    return (match[0] for match in _WORD.finditer(words))


def _chain(first: Iterator[ModelEvent], second: Iterator[ModelEvent]) -> Iterator[ModelEvent]:
    yield from first
    yield from second


def _says(text: str, words: str) -> bool:
    return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None
