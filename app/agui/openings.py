"""What a stream has opened and not closed yet: messages, calls, reasoning, steps, sub-agents."""

from typing import Any

Event = dict[str, Any]

_KEYS = {
    "STEP": "stepName",
    "REASONING": "messageId",
    "REASONING_MESSAGE": "messageId",
    "TEXT_MESSAGE": "messageId",
    "TOOL_CALL": "toolCallId",
    "SUBAGENT": "subagentRunId",
}
_OPENING = frozenset({"START", "STARTED"})
_CLOSING = frozenset({"END", "FINISHED", "ERROR"})


class Openings:
    """Takes the events of a stream in order."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Event] = {}

    def take(self, event: Event) -> None:
        family, _, word = event["type"].rpartition("_")
        key = _KEYS.get(family)
        if key is None:
            return
        if word in _OPENING:
            self._open[family, event[key]] = event
        elif word in _CLOSING:
            self._open.pop((family, event[key]), None)

    def again(self) -> list[Event]:
        """The openings once more, in their order, for a client that holds what came of them so far."""
        return [dict(event) for event in self._open.values()]
