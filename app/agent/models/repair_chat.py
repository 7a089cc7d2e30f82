"""The repair of OpenAI chat completions streams."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from app.agent.models.sse import CUT
from app.agent.pairing import is_json_object

_log = logging.getLogger(__name__)

Members = dict[str, Any]
DONE = "[DONE]"


@dataclass(slots=True)
class _Call:
    index: int
    theirs: int | None
    id: str
    arguments: str = ""


class ChatRepair:
    """Makes every chunk one that the library takes, and tells a stream that was cut from one that ended.

    A stream has ended if it said `[DONE]` or gave a finish reason. Token counts are told once, the last
    that came. A tool call delta with a new id begins a new call, whatever its index; one without an index
    goes on with the call before it.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._usage: object = None
        self._last: Members = {}
        self._finished = False
        self._over = False

    def take(self, name: str, data: str) -> Iterator[tuple[str, str]]:
        if self._over:
            return
        if data.strip() == DONE:
            self._finished = True
            yield from self.end()
            return
        chunk = _read(data)
        if chunk is None:
            _log.warning("skipped an event of the model's stream that is no JSON object")
        elif error := _error_of(chunk, name):
            self._over = True
            yield "", json.dumps({"error": error})
        else:
            yield "", json.dumps(self._mended(chunk))

    def end(self) -> Iterator[tuple[str, str]]:
        if self._over:
            return
        self._over = True
        if not self._finished:
            yield "", json.dumps({"error": {"message": "the stream was cut", "code": CUT}})
            return
        if self._usage is not None:
            yield "", json.dumps({**self._last, "choices": [], "usage": self._usage})
        yield "", DONE

    def _mended(self, chunk: Members) -> Members:
        usage = chunk.pop("usage", None)
        self._usage = usage if usage is not None else self._usage
        self._last = {name: chunk[name] for name in ("id", "object", "created", "model") if name in chunk}
        chunk["choices"] = [self._choice(choice) for choice in _objects(chunk.get("choices"))]
        return chunk

    def _choice(self, choice: Members) -> Members:
        self._finished = self._finished or bool(choice.get("finish_reason"))
        given: object = choice.get("delta")
        delta = cast(Members, given) if isinstance(given, dict) else {}
        if calls := _objects(delta.get("tool_calls")):
            delta["tool_calls"] = [self._call(call) for call in calls]
        choice["delta"] = delta
        return choice

    def _call(self, delta: Members) -> Members:
        function = cast(Members, delta.get("function") or {})
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        known = self._known(delta, bool(function.get("name")))
        if known is None:
            known = _Call(len(self._calls), _index(delta), str(delta.get("id") or ""))
            self._calls.append(known)
            kept = {"name": function.get("name"), "arguments": arguments or ""}
            mended = {**delta, "index": known.index, "function": kept}
        else:
            # The library appends a name that is repeated to the one it has.
            rest = {name: value for name, value in delta.items() if name not in ("id", "type")}
            mended = {**rest, "index": known.index, "function": {"arguments": arguments or ""}}
        known.arguments += arguments or ""
        return mended

    def _known(self, delta: Members, named: bool) -> _Call | None:
        """The call that this delta goes on with; None if it begins one."""
        given, theirs = str(delta.get("id") or ""), _index(delta)
        if given:
            return next(
                (call for call in self._calls if call.id == given and theirs in (None, call.theirs)), None
            )
        if theirs is None:
            last = self._calls[-1] if self._calls else None
        else:
            last = next((call for call in reversed(self._calls) if call.theirs == theirs), None)
        if last is not None and named and is_json_object(last.arguments):
            return None
        return last


def _index(delta: Members) -> int | None:
    index = delta.get("index")
    return index if isinstance(index, int) else None


def _objects(value: object) -> list[Members]:
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(Members, item) for item in items if isinstance(item, dict)]


def _read(data: str) -> Members | None:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast(Members, value) if isinstance(value, dict) else None


def _error_of(chunk: Members, name: str) -> Members | None:
    """An error that came inside of a stream, in one shape."""
    error: object = chunk.get("error")
    if isinstance(error, dict):
        return cast(Members, error) or None
    if error:
        return {"message": str(error)}
    if name == "error":
        return {"message": str(chunk.get("message") or "the provider reported an error")}
    if any(choice.get("finish_reason") == "error" for choice in _objects(chunk.get("choices"))):
        return {"message": "the provider stopped with an error"}
    return None
