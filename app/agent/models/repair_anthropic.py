"""The repair of Anthropic message streams."""

import json
import logging
from collections.abc import Iterator
from typing import Any, cast

from app.agent.models.sse import CUT

_log = logging.getLogger(__name__)

Members = dict[str, Any]

_EVENTS = frozenset(
    {
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "error",
    }
)
_BLOCKS = frozenset(
    {
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
    }
)
_DELTAS = frozenset(
    {"text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta"}
)


class AnthropicRepair:
    """Leaves out events, blocks and deltas of kinds that we do not know, pings, and token counts that are
    null. A tool's input that came whole with the start of its block is told as a delta behind it. Pieces of a
    signature are joined, for the library keeps the last. A stream that stops without `message_stop` ends in
    an error."""

    def __init__(self) -> None:
        self._unknown: set[object] = set()
        self._whole: set[object] = set()
        self._signatures: dict[object, str] = {}
        self._over = False

    def take(self, name: str, data: str) -> Iterator[tuple[str, str]]:
        if self._over:
            return
        event = _read(data)
        kind = event.get("type", name) if event is not None else None
        if event is None or kind not in _EVENTS:
            return
        if kind in ("message_stop", "error"):
            self._over = True
        if self._is_known(event, str(kind)):
            _without_null_counts(event)
            self._join_signature(event)
            whole = self._input_of(event)
            yield str(kind), json.dumps(event)
            if whole:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(whole)}
                told = {"type": "content_block_delta", "index": event.get("index"), "delta": delta}
                yield "content_block_delta", json.dumps(told)

    def end(self) -> Iterator[tuple[str, str]]:
        if not self._over:
            self._over = True
            error = {"type": CUT, "message": "the stream was cut"}
            yield "error", json.dumps({"type": "error", "error": error})

    def _is_known(self, event: Members, kind: str) -> bool:
        index = event.get("index")
        if kind == "content_block_start":
            block = cast(Members, event.get("content_block") or {})
            known = block.get("type") in _BLOCKS
            if not known:
                _log.warning("skipped a block of the kind %r in the model's answer", block.get("type"))
                self._unknown.add(index)
            return known
        if kind == "content_block_delta":
            delta = cast(Members, event.get("delta") or {})
            sort = delta.get("type")
            late = sort == "input_json_delta" and (index in self._whole or not delta.get("partial_json"))
            return index not in self._unknown and sort in _DELTAS and not late
        return kind != "content_block_stop" or index not in self._unknown

    def _join_signature(self, event: Members) -> None:
        """Makes every delta of a signature hold all of it so far."""
        index = event.get("index")
        for name in ("content_block", "delta"):
            holder = cast(Members, event.get(name) or {})
            piece = holder.get("signature")
            if isinstance(piece, str):
                self._signatures[index] = holder["signature"] = self._signatures.get(index, "") + piece

    def _input_of(self, event: Members) -> Members | None:
        """Takes the input out of the start of a tool's block."""
        block = cast(Members, event.get("content_block") or {})
        whole = block.get("input")
        if block.get("type") != "tool_use" or not isinstance(whole, dict) or not whole:
            return None
        block["input"] = {}
        self._whole.add(event.get("index"))
        return cast(Members, whole)


def _without_null_counts(event: Members) -> None:
    for holder in (event, event.get("message")):
        if isinstance(holder, dict):
            usage = cast(Members, holder).get("usage")
            if isinstance(usage, dict):
                counts = cast(Members, usage)
                holder["usage"] = {name: count for name, count in counts.items() if count is not None}


def _read(data: str) -> Members | None:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast(Members, value) if isinstance(value, dict) else None
