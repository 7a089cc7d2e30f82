"""A model that says what it was told to, for tests: pieces, waits and failures in a given order."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from enum import Enum

from app.agent.models.base import Finished, ModelError, ModelEvent, TextPiece
from app.agent.prompt import Prompt
from app.conversation.messages import StopReason


class Line(Enum):
    """What a reply may hold beside events. `CUT`: the stream ends here, without being finished."""

    CUT = "cut"


CUT = Line.CUT
Piece = ModelEvent | str | asyncio.Event | BaseException | Line
Reply = str | Sequence[Piece]


class ScriptedModel:
    """Gives one reply after the other, one for each call, and records every prompt in `prompts`.

    A reply is text or a sequence of pieces: model events, text, an `asyncio.Event` to wait for, an exception
    to raise, or `CUT`. A reply that names no end ends with `Finished(stop)`. A call beyond the last reply
    fails. `closed` counts the streams that came to an end, however they did.
    """

    def __init__(
        self,
        replies: Iterable[Reply],
        *,
        provider: str = "scripted",
        name: str = "script",
        inputs: frozenset[str] = frozenset(),
    ) -> None:
        self.provider = provider
        self.name = name
        self.inputs = inputs
        self.prompts: list[Prompt] = []
        self.closed = 0
        self._replies = list(replies)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        self.prompts.append(prompt)
        if len(self.prompts) > len(self._replies):
            raise ModelError("The script is at its end.")
        reply = self._replies[len(self.prompts) - 1]
        try:
            for piece in (reply,) if isinstance(reply, str) else reply:
                if isinstance(piece, BaseException):
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif isinstance(piece, str):
                    yield TextPiece(piece)
                elif piece is CUT:
                    return
                else:
                    yield piece
                    if isinstance(piece, Finished):
                        return
            yield Finished(StopReason.STOP)
        finally:
            self.closed += 1
