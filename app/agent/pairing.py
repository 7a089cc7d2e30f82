"""Calls and their results. A provider refuses a prompt in which a call has no result right behind it.

A stored history may lack one (a crash, a client that never answered) or hold it later. It is never mended
itself; the prompt made from it is.
"""

from collections.abc import Sequence

from pydantic_core import from_json

from app.clock import Clock
from app.conversation.blocks import Block, ToolCall
from app.conversation.messages import Content, Message, Role, tool_result_message

NOT_EXECUTED = "This call was not executed: no result of it was recorded."
NAMELESS = "unknown"
"""The name of a tool whose call came without one. Neither a provider nor a result takes an empty name."""

_Place = tuple[int, int]
"""A call: the index of its message and its own index among that message's calls."""


def result_of(
    call: ToolCall,
    content: Content,
    *,
    is_error: bool,
    id: str | None = None,
    clock: Clock | None = None,
    sender_id: str | None = None,
) -> Message:
    """The message that answers a call, whatever the call is named."""
    return tool_result_message(
        call.id,
        call.name or NAMELESS,
        content,
        is_error=is_error,
        id=id,
        clock=clock,
        sender_id=sender_id,
    )


def unanswered_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls that have no result, in the order in which they were made."""
    answers = _match(messages)
    return [
        call
        for index, message in enumerate(messages)
        for number, call in enumerate(message.tool_calls())
        if (index, number) not in answers
    ]


def spans(messages: Sequence[Message]) -> list[tuple[int, int | None]]:
    """Where the calls and their results stand: for each call, in the order in which they were made, the index
    of its message and that of its result, None if it has none."""
    answers = _match(messages)
    return [
        (index, answers.get((index, number)))
        for index, message in enumerate(messages)
        for number in range(len(message.tool_calls()))
    ]


def waiting_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls without a result of the last message that made any: what a run may still see to."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].tool_calls():
            return unanswered_calls(messages[at:])
    return []


def tail_of(messages: Sequence[Message], calls: Sequence[ToolCall]) -> Sequence[Message]:
    """The messages from the one that made the last of these calls on; none without a call."""
    if not calls:
        return ()
    for at in range(len(messages) - 1, -1, -1):
        if calls[-1] in messages[at].tool_calls():
            return messages[at:]
    return ()


def paired(messages: Sequence[Message]) -> list[Message]:
    """The messages as a provider takes them.

    Every assistant message with calls is followed at once by one result for each call, in call order; a
    missing one is an error result that says so. Results that answer no call are left out. Arguments that
    are no JSON object read `{}`, and a call without a name is one of `unknown`. All else keeps its order.
    """
    answers = _match(messages)
    prompt: list[Message] = []
    for index, message in enumerate(messages):
        if message.role is Role.TOOL_RESULT:
            continue
        calls = message.tool_calls()
        prompt.append(_with_sound_calls(message) if calls else message)
        for number, call in enumerate(calls):
            answer = answers.get((index, number))
            prompt.append(_missing(message, call, number) if answer is None else messages[answer])
    return prompt


def _match(messages: Sequence[Message]) -> dict[_Place, int]:
    """The index of each result, by the call it answers.

    A result answers the first open call of its id in the latest message before it that has one; ids that a
    provider used twice stay apart so.
    """
    latest: dict[str, list[_Place]] = {}
    answers: dict[_Place, int] = {}
    for index, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls()):
            places = latest.get(call.id)
            if places is None or places[0][0] != index:
                places = latest[call.id] = []
            places.append((index, number))
        if message.role is Role.TOOL_RESULT:
            open_places = (place for place in latest.get(message.call_id or "", ()) if place not in answers)
            if (place := next(open_places, None)) is not None:
                answers[place] = index
    return answers


def _missing(message: Message, call: ToolCall, number: int) -> Message:
    """Made from what is stored alone, so that the same history always gives the same prompt."""
    result = result_of(call, NOT_EXECUTED, is_error=True, id=f"{message.id}:{number}")
    return result.model_copy(update={"created_at": message.created_at})


def _with_sound_calls(message: Message) -> Message:
    if all(_is_sound(call) for call in message.tool_calls()):
        return message
    content: tuple[Block, ...] = tuple(
        _sound(block) if isinstance(block, ToolCall) and not block.server else block
        for block in message.content
    )
    return message.model_copy(update={"content": content})


def _is_sound(call: ToolCall) -> bool:
    return bool(call.name) and is_json_object(call.arguments)


def _sound(call: ToolCall) -> ToolCall:
    if _is_sound(call):
        return call
    arguments = call.arguments if is_json_object(call.arguments) else "{}"
    return call.model_copy(update={"name": call.name or NAMELESS, "arguments": arguments})


def is_json_object(text: str) -> bool:
    """Whether the text is one whole JSON object."""
    if text == "{}":
        return True
    try:
        return isinstance(from_json(text, allow_inf_nan=False), dict)
    except ValueError:
        return False
