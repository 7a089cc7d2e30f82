"""What one model call is given, made of what was said: a view, from which nothing is kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from app.agent.attribution import attributed
from app.agent.condensing import Condenser
from app.agent.handoff import definition
from app.agent.hooking import Hooking
from app.agent.mind import Mind
from app.agent.pairing import paired
from app.agent.prompt import Prompt, ToolDefinition
from app.agent.steering import noticed
from app.clock import Clock
from app.conversation.messages import Message, Usage


@dataclass(frozen=True, slots=True)
class PromptMaker:
    """Makes the prompt of the model call `turn` of a run. `usage` is what the calls before it cost."""

    mind: Mind
    condenser: Condenser
    hooking: Hooking
    client_tools: Mapping[str, ToolDefinition]
    clock: Clock
    turn: int
    usage: Usage

    async def prompt(self, messages: Sequence[Message], arrived: Collection[str]) -> Prompt:
        """Every shaping starts from all that was said, so that none adds to another. `arrived` are the ids of
        messages that came while the run was under way. HookFailed, Abort, Stopped."""
        mind, messages = self.mind, self.condenser.view(messages)
        if mind.hooks.before_call:
            messages = await self.hooking.shape(messages, self.turn, self.usage)
        if mind.steering_notice:
            messages = noticed(messages, arrived, self.clock)
        if mind.attribution:
            messages = attributed(messages, mind.name)
        schema = mind.output.schema if mind.output is not None else None
        return Prompt(mind.instructions, paired(messages), self._offered(), schema)

    def _offered(self) -> tuple[ToolDefinition, ...]:
        """The agent's own tools, those that hand over, and the client's; the first of a name counts."""
        offered = {tool.name: tool for tool in self.mind.toolbox.definitions}
        for name, target in self.mind.handoffs().items():
            offered.setdefault(name, definition(name, target))
        for name, tool in self.client_tools.items():
            offered.setdefault(name, tool)
        return tuple(offered.values())
