"""What a client makes of a stream: its list of messages, by the reducer rules of AG-UI."""

from collections.abc import Iterable, Sequence
from typing import Any

from jsonpatch import (  # pyright: ignore[reportMissingTypeStubs]
    JsonPatch,
    JsonPatchException,
    JsonPointerException,
)

Held = dict[str, Any]


class Client:
    """Holds messages as the released clients do. `messages` are those it has before the stream."""

    def __init__(self, messages: Sequence[Held] = ()) -> None:
        self.messages: list[Held] = [dict(message) for message in messages]
        self.state: Any = {}

    def take(self, events: Iterable[dict[str, Any]]) -> list[Held]:
        for event in events:
            handler = getattr(self, "_" + event["type"].lower(), None)
            if handler is not None:
                handler(event)
        return self.messages

    def _find(self, id: str) -> Held | None:
        return next((message for message in self.messages if message["id"] == id), None)

    def _open(self, id: str, role: str, **members: Any) -> Held:
        held = self._find(id)
        if held is None:
            held = {"id": id, "role": role, **members}
            self.messages.append(held)
        return held

    def _merge(self, event: dict[str, Any]) -> None:
        held = self._find(event["messageId"])
        if held is not None and "metadata" in event:
            held["metadata"] = {**held.get("metadata", {}), **event["metadata"]}

    def _run_started(self, event: dict[str, Any]) -> None:
        for message in event.get("input", {}).get("messages", ()):
            if self._find(message["id"]) is None:
                self.messages.append(dict(message))

    def _state_snapshot(self, event: dict[str, Any]) -> None:
        self.state = event["snapshot"]

    def _state_delta(self, event: dict[str, Any]) -> None:
        """All of the operations or none."""
        try:
            self.state = JsonPatch(event["delta"]).apply(self.state)  # pyright: ignore[reportUnknownMemberType]
        except (JsonPatchException, JsonPointerException):
            return

    def _activity_snapshot(self, event: dict[str, Any]) -> None:
        members = {"activityType": event["activityType"], "content": event["content"]}
        held = self._open(event["messageId"], "activity", **members)
        if held["role"] == "activity":
            held.update(members)
            self._merge(event)

    def _messages_snapshot(self, event: dict[str, Any]) -> None:
        """What is held keeps its place; what the snapshot lacks goes, and what is new comes last."""
        told = {message["id"]: dict(message) for message in event["messages"]}
        assert len(told) == len(event["messages"]), "an id occurs twice"
        roles = {message["role"] for message in event["messages"]}
        kept = [
            told.pop(held["id"], held)
            for held in self.messages
            if held["id"] in told or (held["role"] in ("activity", "reasoning") and held["role"] not in roles)
        ]
        self.messages[:] = [*kept, *told.values()]

    def _text_message_start(self, event: dict[str, Any]) -> None:
        name = {"name": event["name"]} if "name" in event else {}
        self._open(event["messageId"], event.get("role", "assistant"), content="", **name)
        self._merge(event)

    def _reasoning_message_start(self, event: dict[str, Any]) -> None:
        self._open(event["messageId"], "reasoning", content="")
        self._merge(event)

    def _text_message_content(self, event: dict[str, Any]) -> None:
        held = self._find(event["messageId"])
        assert held is not None
        if held["role"] == "activity":
            return
        before = held.get("content", "")
        held["content"] = (before if isinstance(before, str) else "") + event["delta"]
        self._merge(event)

    _reasoning_message_content = _text_message_content

    def _text_message_end(self, event: dict[str, Any]) -> None:
        self._merge(event)

    _reasoning_message_end = _text_message_end

    def _reasoning_encrypted_value(self, event: dict[str, Any]) -> None:
        find = self._call if event["subtype"] == "tool-call" else self._find
        held = find(event["entityId"])
        assert held is not None
        held["encryptedValue"] = event["encryptedValue"]

    def _call(self, id: str) -> Held | None:
        calls = (call for message in self.messages for call in message.get("toolCalls", ()))
        return next((call for call in calls if call["id"] == id), None)

    def _tool_call_start(self, event: dict[str, Any]) -> None:
        held = self._call(event["toolCallId"])
        if held is not None:
            held["function"]["name"] = event["toolCallName"]
            return
        owner = self._open(event["parentMessageId"], "assistant")
        function = {"name": event["toolCallName"], "arguments": ""}
        call = {"id": event["toolCallId"], "type": "function", "function": function}
        owner.setdefault("toolCalls", []).append(call)

    def _tool_call_args(self, event: dict[str, Any]) -> None:
        held = self._call(event["toolCallId"])
        assert held is not None
        held["function"]["arguments"] += event["delta"]

    def _tool_call_result(self, event: dict[str, Any]) -> None:
        result = {
            "id": event["messageId"],
            "role": "tool",
            "toolCallId": event["toolCallId"],
            "content": event["content"],
        }
        if "metadata" in event:
            result["metadata"] = event["metadata"]
        self.messages.insert(self._place(event["toolCallId"]), result)

    def _place(self, call_id: str) -> int:
        """Right behind the message that made the call and the results it has."""
        for index, message in enumerate(self.messages):
            if any(call["id"] == call_id for call in message.get("toolCalls", ())):
                place = index + 1
                while place < len(self.messages) and self.messages[place]["role"] == "tool":
                    place += 1
                return place
        return len(self.messages)
