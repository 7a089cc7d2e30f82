"""The built-in model: needs no key and no service, and shows what the product can do."""

import asyncio
from collections.abc import AsyncGenerator

from app.agent.models.base import Finished, ModelEvent
from app.agent.models.demo_replies import reply_to
from app.agent.prompt import Prompt
from app.conversation.messages import StopReason, Usage

_BREATH = 64


class DemoModel:
    """Does what plain words ask for, the same every time.

    `delay` is the pause in seconds after each piece, `pause` the one when it is asked to be slow. Without a
    delay it still lets others run after every 64 pieces.
    """

    provider = "demo"
    name = "demo"
    inputs = frozenset({"image", "audio", "video", "document"})

    def __init__(self, *, delay: float = 0.02, pause: float = 0.25) -> None:
        self._delay = delay
        self._pause = pause

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        reply = reply_to(prompt)
        seconds = self._pause if reply.slow else self._delay
        written = 0
        for piece in reply.pieces:
            yield piece
            written += 1
            if seconds:
                await asyncio.sleep(seconds)
            elif written % _BREATH == 0:
                await asyncio.sleep(0)
        if reply.error is not None:
            raise reply.error
        read = sum(len(message.content) for message in prompt.messages)
        yield Finished(
            StopReason.TOOL_USE if reply.calls else StopReason.STOP,
            usage=Usage(input_tokens=read, output_tokens=written, total_tokens=read + written),
        )
