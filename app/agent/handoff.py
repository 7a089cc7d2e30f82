"""Handing a conversation over to another agent, inside a run.

A model hands over by calling the tool of the other agent, `transfer_to_<name>`. Who goes on is no state of
its own: it can be told from what was said.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from app.agent.mind import Mind
from app.agent.prompt import ToolDefinition
from app.conversation.messages import Message, Role
from app.conversation.views import reader_sees

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def tool_name(agent: str) -> str:
    """The name of the tool that hands over to this agent."""
    return f"transfer_to_{_UNFIT.sub('_', agent)}"[:64]


def by_tool(agents: Sequence[T], taken: Collection[str]) -> dict[str, T]:
    """Agents by the names of the tools that hand over to them. ValueError if two tools have one name; `taken`
    are those of other tools."""
    found: dict[str, T] = {}
    for agent in agents:
        name = tool_name(agent.name)
        if name in found or name in taken:
            raise ValueError(f"two tools are named {name}")
        found[name] = agent
    return found


def definition(tool: str, mind: Mind) -> ToolDefinition:
    """What a model is told of the tool."""
    about = f" {mind.description}" if mind.description else ""
    return ToolDefinition(
        tool,
        f"Hands the conversation over to {mind.name}, who answers from then on.{about}",
        {"type": "object", "properties": {}, "additionalProperties": False},
    )


def responder(root: Mind, messages: Sequence[Message]) -> Mind:
    """Who answered last; the root where that is nobody whom it can reach."""
    at = _last_answer(messages)
    return root if at is None else _reachable(root).get(messages[at].sender_id or "", root)


def handed_over(mind: Mind, messages: Sequence[Message]) -> Mind | None:
    """Whom the last answer handed over to, if it did and that was taken."""
    at = _last_answer(messages)
    if at is None or messages[at].sender_id != mind.name:
        return None
    targets = mind.handoffs()
    done = {message.call_id for message in messages[at + 1 :] if _is_success(message)}
    for call in messages[at].tool_calls():
        if call.name in targets and call.id in done:
            return targets[call.name]
    return None


def _is_success(message: Message) -> bool:
    return message.role is Role.TOOL_RESULT and not message.is_error


def _last_answer(messages: Sequence[Message]) -> int | None:
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.ASSISTANT and reader_sees(messages[at]):
            return at
    return None


def _reachable(root: Mind) -> Mapping[str, Mind]:
    """All agents that can come to answer, by name; agents may hand over in a circle."""
    found = {root.name: root}
    queue = [root]
    for mind in queue:  # grows as it goes
        for target in mind.handoffs().values():
            if target.name not in found:
                found[target.name] = target
                queue.append(target)
    return found
