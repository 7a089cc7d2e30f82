"""Messages for a run that is under way, in memory."""

from collections.abc import Sequence

from app.conversation.messages import Message


class MemoryInbox:
    """Filled by one task, taken by the run."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    def put(self, message: Message) -> None:
        self._messages.append(message)

    async def take(self) -> Sequence[Message]:
        taken, self._messages = self._messages, []
        return taken
