"""Who said what, told to a model that answers among several people and agents.

Only a view: what is stored stays as it is. The prefix is `(Human) <sender>: ` for a user message and
`(Agent) <sender>: ` for an assistant message. Its first `: ` ends the sender, whatever the sender is called.
"""

import re
from collections.abc import Sequence

from app.conversation.blocks import Block, Text
from app.conversation.messages import Message, Role
from app.conversation.views import reader_sees

_BREAK = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_UNSEEN = "\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_LOOK_ALIKE = re.compile(
    rf"((?:^|(?<=[{_BREAK}]))(?:[^\S{_BREAK}]|[{_UNSEEN}])*)"
    rf"(?=[(\uff08][\s{_UNSEEN}]{{0,8}}(?:human|agent)[\s{_UNSEEN}]{{0,8}}[)\uff09])",
    re.IGNORECASE,
)
_NOT_IN_A_NAME = re.compile(rf"[\s\x00-\x1f\x7f-\x9f{_UNSEEN}]+")
_NAMELESS = "unknown"


def attributed(messages: Sequence[Message], own: str) -> list[Message]:
    """The messages as the agent named `own` reads them: same ids, same order, same number.

    Own is what has no sender or was sent under this name. A message by somebody else has a prefix before
    its first Text block, or a new first Text block with the prefix alone. An assistant message of another
    agent becomes a user message of its texts: its reasoning is sealed for its own provider, and it must not
    look like something that this agent said.

    Unchanged are tool results, injected messages (nobody's words), what this agent said itself, and
    assistant messages with calls, whoever sent them, for a call and its result belong together.

    A line in the text of a user message, own or not, or of another agent's, that begins like a prefix gets a
    backslash before it, so that only a real prefix begins a line like one.
    """
    return [_as_read(message, own) for message in messages]


def _as_read(message: Message, own: str) -> Message:
    if message.role is Role.TOOL_RESULT or not reader_sees(message):
        return message
    sender = message.sender_id if message.sender_id and message.sender_id != own else None
    if message.role is Role.USER:
        prefix = "" if sender is None else _prefix("Human", sender)
        return _with(message, _marked(message.content, prefix))
    if sender is None or message.tool_calls():
        return message
    return Message(
        id=message.id,
        role=Role.USER,
        content=_marked(message.text(), _prefix("Agent", sender)),
        created_at=message.created_at,
        sender_id=message.sender_id,
        name=message.name,
        origin=message.origin,
        metadata=message.metadata,
    )


def _with(message: Message, content: tuple[Block, ...]) -> Message:
    return message if content == message.content else message.model_copy(update={"content": content})


def _prefix(kind: str, sender: str) -> str:
    """On one line and with no `: ` inside of the sender, so that a name cannot pass for a text."""
    name = _NOT_IN_A_NAME.sub(" ", sender).strip().replace(": ", ":")
    return f"({kind}) {name or _NAMELESS}: "


def _marked(blocks: Sequence[Block], prefix: str) -> tuple[Block, ...]:
    marked: list[Block] = []
    waiting = prefix
    for block in blocks:
        if isinstance(block, Text):
            text = waiting + _LOOK_ALIKE.sub(r"\1\\", block.text)
            block = block.model_copy(update={"text": text}) if text != block.text else block
            waiting = ""
        marked.append(block)
    return (Text(text=waiting), *marked) if waiting else tuple(marked)
