"""The hooks before and after a model: they may answer in its place, and see what was answered."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import cast

from app.agent.hook_call import HookFailed, name_of, own
from app.agent.hooking import Hooking
from app.agent.hooks import AfterModel, BeforeModel, BeforeModelHook, Instead
from app.agent.models.base import Finished, Model, ModelEvent, TextPiece
from app.agent.prompt import Prompt
from app.conversation.blocks import Text
from app.conversation.messages import Message, StopReason, Usage

PROVIDER = "hook"
"""The provider of what a hook said in a model's place; the model is the hook's name."""


@dataclass(frozen=True, slots=True)
class Substitute:
    """Says one text, whatever it is asked. It costs nothing."""

    name: str
    text: str
    provider: str = PROVIDER
    inputs: frozenset[str] = frozenset()

    async def stream(self, prompt: Prompt) -> AsyncIterator[ModelEvent]:
        yield TextPiece(self.text)
        yield Finished(StopReason.STOP)


async def answering(hooking: Hooking, model: Model, turn: int, usage: Usage) -> Model:
    """Who answers this call: the model, or a substitute with the words of the first hook that gave some.
    HookFailed, Abort, Stopped."""
    for hook in hooking.hooks.before_model:
        given = BeforeModel(**hooking.facts(turn, usage))
        result = await hooking.calls.result(hook, given, stop=hooking.run.stop)
        if result is not None:
            return Substitute(name_of(hook), _text(hook, result))
    return model


async def answered(hooking: Hooking, message: Message | None, turn: int, usage: Usage) -> None:
    """Shows the hooks what was answered; to be asked when it is kept and told. HookFailed, Abort, Stopped."""
    for hook in hooking.hooks.after_model:
        shown = own(message) if message is not None else None
        given = AfterModel(**hooking.facts(turn, usage), message=shown)
        result = await hooking.calls.result(hook, given, stop=hooking.run.stop)
        if result is not None:
            kind = type(result).__name__
            raise HookFailed(f"hook {name_of(hook)} returned {kind}; what a model said cannot be replaced")


def _text(hook: BeforeModelHook, result: object) -> str:
    if not isinstance(result, Instead):
        raise HookFailed(f"hook {name_of(hook)} returned {type(result).__name__}, neither Instead nor None")
    content: object = result.content
    if content is None or isinstance(content, str):
        return content or ""
    blocks = content if isinstance(content, list | tuple) else (content,)
    texts = [block.text if isinstance(block, Text) else None for block in cast(Sequence[object], blocks)]
    if not all(isinstance(text, str) for text in texts):
        raise HookFailed(f"hook {name_of(hook)} answered for the model with more than text")
    return "".join(cast(list[str], texts))
