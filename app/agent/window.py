"""The newest turns and nothing else: a window that slides over the history."""

from collections.abc import Sequence

from app.agent.condensing import Means, NotSummarised, Plan
from app.agent.turns import sound_cuts, spoken, turn_starts
from app.conversation.messages import Message
from app.conversation.recall import Recall


class Window:
    """Shows the model the last `turns` turns, each from a message of a user to the one before the next.

    The present turn is always shown whole, and a call is never shown without its result: where a result came
    turns later, the window reaches back to its call. ValueError for less than one turn.
    """

    def __init__(self, *, turns: int) -> None:
        if turns < 1:
            raise ValueError(f"a window has at least 1 turn, not {turns}")
        self.turns = turns

    def recall(self) -> Recall:
        """One turn more than is shown, so that the oldest edge is the same however much was read."""
        return Recall(turns=self.turns + 1)

    def view(self, messages: Sequence[Message]) -> Sequence[Message]:
        starts = spoken(messages)
        if len(starts) <= self.turns:
            return messages
        edge = min(starts[-self.turns], turn_starts(messages)[-1])
        sound = sound_cuts(messages)
        cut = next((start for start in reversed(starts) if start <= edge and sound[start]), 0)
        return messages[cut:]

    def plan(self, messages: Sequence[Message]) -> Plan | None:
        """Never: what slides out of the window is gone from the prompt."""
        return None

    async def summarise(self, plan: Plan, means: Means) -> Message:
        raise NotSummarised("a window makes no summaries")
