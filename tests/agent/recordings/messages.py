"""Streams of servers that speak Anthropic's messages."""

import json
from typing import Any

from tests.agent.replay import Recording


def event(kind: str, **members: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    return b"".join(
        [
            event("content_block_start", index=index, content_block=start),
            *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
            event("content_block_stop", index=index),
        ]
    )


def words(*pieces: str, first: str = "", index: int = 0) -> bytes:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": first}, *deltas)


def tool(index: int, id: str, name: str, *pieces: str, given: dict[str, Any] | None = None) -> bytes:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(index, {"type": "tool_use", "id": id, "name": name, "input": given or {}}, *deltas)


START = event(
    "message_start",
    message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-a", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 12, "output_tokens": 1},
    },
)  # fmt: skip
PING = event("ping")


def end(reason: str, **usage: Any) -> bytes:
    counted = {"output_tokens": 9, **usage}
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage=counted) + event("message_stop")


SUNNY = Recording(START + words("Sunny.") + end("end_turn"))

OVERLOADED = Recording(
    START
    + event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + PING
    + event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Half an ans"})
    + event("error", error={"type": "overloaded_error", "message": "Overloaded"})
)

NO_ARGUMENTS = Recording(
    START
    + tool(0, "toolu_1", "get_time", "")
    + PING
    + tool(1, "toolu_2", "get_weather", "", '{"ci', 'ty": "Bas', 'el"}')
    + tool(2, "toolu_3", "get_weather", "", given={"city": "Bern"})
    + end("tool_use")
)

SIGNED = Recording(
    START
    + block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "I need the "},
        {"type": "thinking_delta", "thinking": "weather."},
        {"type": "signature_delta", "signature": "QUFBQUFBQUFBQUFBQUFBQUFB"},
    )
    + block(1, {"type": "redacted_thinking", "data": "UkVEQUNURUQ="})
    + tool(2, "toolu_g", "get_weather", '{"city":"Basel"}')
    + end("tool_use")
)

SIGNATURE = "QUFBQUFBQUFB+/=="
SIGNED_IN_PIECES = Recording(
    START
    + block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "First."},
        *({"type": "signature_delta", "signature": piece} for piece in ("QUFB", "QUFB", "QUFB+/==")),
    )
    + block(
        1,
        {"type": "thinking", "thinking": "", "signature": "QUFB"},
        {"type": "thinking_delta", "thinking": "Second."},
        {"type": "signature_delta", "signature": "QUFBQUFB+/=="},
    )
    + tool(2, "toolu_s", "get_weather", '{"city":"Basel"}')
    + end("tool_use")
)

FROM_THE_FUTURE = Recording(
    START
    + b'event: vendor_future_event\ndata: {"type": "vendor_future_event", "x": 1}\n\n'
    + b"event: ping\n\nevent: ping\ndata: pong\n\n"
    + block(0, {"type": "future_block", "z": 1}, {"type": "future_delta", "y": 1})
    + block(
        1, {"type": "text", "text": "pre"}, {"type": "future_delta"}, {"type": "text_delta", "text": "fix ok"}
    )
    + end("end_turn", cache_read_input_tokens=None)
)

ENDED_EARLY = Recording(START + words("The first half"))
