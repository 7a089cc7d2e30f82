"""The events of a run as what a client holds of them: its messages and its state at one moment.

AG-UI clients reduce a stream by these rules; here they are applied to a part of a live run, so that somebody
who joins in the middle is given the same by one snapshot.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
from jsonpatch import (  # pyright: ignore[reportMissingTypeStubs]
    JsonPatch,
    JsonPatchException,
    JsonPointerException,
)
from pydantic import JsonValue

from app.agui.openings import Event, Openings

Held = dict[str, Any]


class Fold:
    """What a client holds that had `before` and took these frames.

    `message_ids` are those of the messages that the frames tell of, complete or open. `is_over` tells that
    the run ended with them.
    """

    def __init__(self, before: Sequence[Held] = (), state: JsonValue = None) -> None:
        self.state: JsonValue = state
        self.message_ids: set[str] = set()
        self.is_over = False
        self._openings = Openings()
        self._list: list[Held] = []
        self._by_id: dict[str, Held] = {}
        self._calls: dict[str, tuple[Held, Held]] = {}
        """By call id the message that makes the call, and the call."""
        self._pieces: dict[tuple[str, str], list[str]] = {}
        """Texts and arguments that grow, by their kind and id."""
        self._results: dict[str, Event] = {}
        self._hold(before)
        self._takers: dict[str, Callable[[Event], None]] = {
            "RUN_STARTED": self._started,
            "RUN_FINISHED": self._over,
            "RUN_ERROR": self._over,
            "STATE_SNAPSHOT": self._state,
            "STATE_DELTA": self._patch,
            "MESSAGES_SNAPSHOT": self._replace,
            "ACTIVITY_SNAPSHOT": self._activity,
            "TEXT_MESSAGE_START": self._text,
            "TEXT_MESSAGE_CONTENT": self._content,
            "TEXT_MESSAGE_END": self._described,
            "REASONING_MESSAGE_START": self._reasoning,
            "REASONING_MESSAGE_CONTENT": self._content,
            "REASONING_MESSAGE_END": self._described,
            "REASONING_ENCRYPTED_VALUE": self._sealed,
            "TOOL_CALL_START": self._call,
            "TOOL_CALL_ARGS": self._arguments,
            "TOOL_CALL_RESULT": self._result,
        }

    @classmethod
    def of(cls, frames: Iterable[bytes], before: Sequence[Held] = (), state: JsonValue = None) -> "Fold":
        """`frames` are JSON documents, as one generation of clients gets them."""
        fold = cls(before, state)
        for frame in frames:
            fold.take(orjson.loads(frame))
        return fold

    def take(self, event: Event) -> None:
        taker = self._takers.get(event["type"])
        if taker is not None:
            taker(event)
        self._openings.take(event)

    def messages(self) -> list[Held]:
        """The list as it is by now, without the results that the run told. A snapshot leaves what a client
        holds where it stands and puts the rest at the end, and a result belongs behind its call."""
        for (kind, id), pieces in self._pieces.items():
            if kind == "call":
                self._calls[id][1]["function"]["arguments"] = "".join(pieces)
            elif id in self._by_id:
                self._by_id[id]["content"] = "".join(pieces)
        return self._list

    def told_again(self) -> list[Event]:
        """What is told behind a snapshot of the messages: the results, and the openings of what is not
        complete."""
        return [*map(dict, self._results.values()), *self._openings.again()]

    def _hold(self, messages: Iterable[Held]) -> None:
        for message in messages:
            self._list.append(message)
            self._by_id[message["id"]] = message
            for call in message.get("toolCalls", ()):
                self._calls[call["id"]] = message, call

    def _made(self, id: str, role: str, **members: Any) -> Held:
        """The message of this id, made at the end of the list where there is none."""
        self.message_ids.add(id)
        if id not in self._by_id:
            self._hold([{"id": id, "role": role, **members}])
        return self._by_id[id]

    def _started(self, event: Event) -> None:
        for message in event.get("input", {}).get("messages", ()):
            self.message_ids.add(message["id"])
            if message["id"] not in self._by_id:
                self._hold([message])

    def _over(self, event: Event) -> None:
        self.is_over = True

    def _state(self, event: Event) -> None:
        self.state = event["snapshot"]

    def _patch(self, event: Event) -> None:
        """All of the operations or none."""
        try:
            self.state = JsonPatch(event["delta"]).apply(self.state)  # pyright: ignore[reportUnknownMemberType]
        except (JsonPatchException, JsonPointerException):
            return

    def _replace(self, event: Event) -> None:
        """A run tells all messages of its thread only where nothing is open: before it pauses."""
        self._list, self._by_id, self._calls, self._pieces = [], {}, {}, {}
        self._hold(message for message in event["messages"] if message["id"] not in self._results)

    def _activity(self, event: Event) -> None:
        held = self._made(event["messageId"], "activity")
        held.update({"activityType": event["activityType"], "content": event["content"]})
        self._describe(held, event)

    def _text(self, event: Event) -> None:
        name = {"name": event["name"]} if "name" in event else {}
        role = event.get("role", "assistant")
        self._describe(self._made(event["messageId"], role, content="", **name), event)

    def _reasoning(self, event: Event) -> None:
        self._describe(self._made(event["messageId"], "reasoning", content=""), event)

    def _content(self, event: Event) -> None:
        id = event["messageId"]
        pieces = self._pieces.get(("text", id))
        if pieces is None:
            held = self._by_id[id].get("content")
            pieces = self._pieces["text", id] = [held] if isinstance(held, str) else []
        pieces.append(event["delta"])

    def _described(self, event: Event) -> None:
        self._describe(self._by_id[event["messageId"]], event)

    def _describe(self, held: Held, event: Event) -> None:
        if "metadata" in event:
            held["metadata"] = {**held.get("metadata", {}), **event["metadata"]}

    def _sealed(self, event: Event) -> None:
        id = event["entityId"]
        held = self._calls[id][1] if event["subtype"] == "tool-call" else self._by_id[id]
        held["encryptedValue"] = event["encryptedValue"]

    def _call(self, event: Event) -> None:
        id, name = event["toolCallId"], event["toolCallName"]
        if id in self._calls:
            self._calls[id][1]["function"]["name"] = name
            return
        owner = self._made(event["parentMessageId"], "assistant")
        call: Held = {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        owner.setdefault("toolCalls", []).append(call)
        self._calls[id] = owner, call

    def _arguments(self, event: Event) -> None:
        id = event["toolCallId"]
        pieces = self._pieces.get(("call", id))
        if pieces is None:
            pieces = self._pieces["call", id] = [self._calls[id][1]["function"]["arguments"]]
        pieces.append(event["delta"])

    def _result(self, event: Event) -> None:
        self.message_ids.add(event["messageId"])
        self._results[event["messageId"]] = event
