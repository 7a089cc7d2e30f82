"""Streams of servers that speak OpenAI's chat completions, each with an accent of its own.

A recording is made of chunks; `said` writes them as events. What is odd stands out as it is.
"""

import json
from typing import Any

from tests.agent.replay import Recording

DONE = b"data: [DONE]\n\n"


def event(data: object) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    ]
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "model-a", "choices": choices, **more,
    }  # fmt: skip


def text(content: str | None) -> dict[str, Any]:
    return chunk({"content": content})


def call(arguments: Any = None, **members: Any) -> dict[str, Any]:
    """A chunk with one tool call delta; `name` goes into its function."""
    function = {key: value for key, value in {"name": members.pop("name", None)}.items() if value}
    if arguments is not None:
        function["arguments"] = arguments
    return chunk({"tool_calls": [{"type": "function", **members, "function": function}]})


def said(*chunks: object, done: bool = True) -> bytes:
    return b"".join(event(part) for part in chunks) + (DONE if done else b"")


ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk(finish="stop")
TOOLS = chunk(finish="tool_calls")
BASEL = '{"city":"Basel"}'
COUNTED = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
BARE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

FINE = Recording(said(ROLE, text("fine"), STOP))

EMPTY_DELTAS = Recording(said(ROLE, text(""), text("Hi"), text(""), text(None), STOP))

TEXT_CALL_TEXT = Recording(
    said(
        ROLE,
        text("Let me look. "),
        call("", index=0, id="call_a", name="get_weather"),
        call('{"city":', index=0),
        call('"Basel"}', index=0),
        text("One moment."),
        TOOLS,
    )
)

FOR_EVER = Recording(said(ROLE, call(BASEL, index=0, id="call_l", name="get_weather"), TOOLS))

HALVES = Recording(
    rb'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    rb'"delta":{"role":"assistant","content":"ok \ud83d"},"finish_reason":null}]}' + b"\n\n"
    rb'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    rb'"delta":{"content":"\ude00 and lone \udcaf end"},"finish_reason":null}]}' + b"\n\n" + said(STOP)
)

NUL = Recording(
    said(
        ROLE,
        text("before\x00after and \\u0000"),
        call('{"city":"Ba\\u0000sel"}', index=0, id="call_n", name="get_weather"),
        TOOLS,
    )
)

NO_INDEX = Recording(
    said(
        ROLE,
        call('{"city":', id="call_1", name="get_weather"),
        call('"Basel"}'),
        call('{"tz":"UTC"}', id="call_2", name="get_time"),
        TOOLS,
    )
)

SAME_INDEX = Recording(
    said(
        ROLE,
        call(BASEL, index=0, id="call_1", name="get_weather"),
        call('{"city":"Bern"}', index=0, id="call_2", name="get_weather"),
        call('{"tz":', index=0, id="call_3", name="get_time"),
        call('"UTC"}', index=0, id="call_3", name="get_time"),
        TOOLS,
    )
)

NO_IDS = Recording(
    said(
        ROLE,
        call(BASEL, index=0, id="", name="get_weather"),
        call('{"city":"Bern"}', index=0, id="", name="get_weather"),
        TOOLS,
    )
)

TWO_OPEN = Recording(
    said(
        ROLE,
        call("", index=0, id="call_1", name="get_weather"),
        call("", index=1, id="call_2", name="get_time"),
        call('{"city":"Ba', index=0),
        call('{"tz":', index=1),
        call('sel"}', index=0),
        call('"UTC"}', index=1),
        TOOLS,
    )
)

ARGUMENTS_AS_OBJECT = Recording(
    said(ROLE, call({"city": "Basel"}, index=0, id="call_1", name="get_weather"), TOOLS)
)

SEALED_CALL = Recording(
    said(
        ROLE,
        call('{"city":', index=0, id="call_1", name="get_weather"),
        call('"Basel"}', index=0, extra_content={"vendor": {"thought_signature": "c2VhbA=="}}),
        TOOLS,
    )
)

EMPTY_CHOICES = Recording(
    said(
        {**BARE, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        ROLE,
        text("Hi"),
        STOP,
        {**BARE, "choices": [], "usage": COUNTED},
        {**BARE, "choices": None, "usage": COUNTED},
    )
)

ODD_CHUNKS = Recording(
    said(ROLE, {**BARE, "choices": [None, {"index": 0, "delta": None, "finish_reason": None}]}, done=False)
    + b"data: not json\n\ndata: 5\n\n"
    + said(text("fine"), STOP)
)

ERROR_IN_THE_MIDDLE = Recording(
    b": keep-alive\n\n"
    + said(
        ROLE,
        text("The first half"),
        chunk({"content": ""}, "error", error={"code": 502, "message": "upstream at http://10.0.0.1 sk-1"}),
        done=False,
    )
)

FINISH_ERROR = Recording(said(ROLE, text("The first half"), chunk(finish="error")))

NAMED_ERROR = Recording(
    said(ROLE, text("The first half"), done=False) + b'event: error\ndata: {"message": "gone"}\n\n'
)

ERROR_ONLY = Recording(said({**BARE, "choices": [], "error": {"code": 429, "message": "slow down"}}))
ERROR_TEXT_ONLY = Recording(said({"error": "boom"}))

NO_FINISH = Recording(said(ROLE, text("All good"), text(".")))
NO_DONE = Recording(said(ROLE, text("All good."), STOP, done=False))
ENDED_EARLY = Recording(said(ROLE, text("The first half"), done=False))

CUT = Recording(
    said(ROLE, text("This sentence stops in the mid"), done=False) + b'data: {"id":"chatcmpl-1","obj',
    end="reset",
)

HANGS = Recording(said(ROLE, text("Thinking about it"), done=False), end="hang")
HANGS_AT_ONCE = Recording(b"", end="hang")

STOP_WITH_CALLS = Recording(said(ROLE, call(BASEL, index=0, id="call_t", name="get_weather"), STOP))

LENGTH = Recording(said(ROLE, text("and so on"), chunk(finish="length")))
FILTERED = Recording(said(ROLE, text("well"), chunk(finish="content_filter")))

REASONING = Recording(
    said(
        chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
        chunk({"content": None, "reasoning_content": "I should call "}),
        chunk({"content": None, "reasoning_content": "the weather tool."}),
        call(BASEL, index=0, id="call_q", name="get_weather"),
        chunk({"content": ""}, "tool_calls"),
    )
)
REASONING_END = Recording(
    said(
        chunk({"role": "assistant", "content": None, "reasoning_content": "Now answer."}),
        chunk({"content": "Sunny.", "reasoning_content": None}),
        STOP,
    )
)

WORDS = "Zürich 北京 👩‍👩‍👧 naïve"
BYTE_BY_BYTE = Recording(said(ROLE, text(WORDS), STOP), split=1)

SEPARATORS = "a\u2028b\u2029c\x85d\u000be"
ODD_SEPARATORS = Recording(said(ROLE, text(SEPARATORS), STOP))

COMMENTS = Recording(
    b": PROCESSING\n\n:\n\ndata:\n\ndata: \n\nevent: ping\ndata: \n\n"
    + event(ROLE)
    + b": PROCESSING\n\n"
    + event(text("fine"))
    + b"retry: 3000\n\nid: 7\n"
    + said(STOP)
    + b": trailing comment\n\n"
)

CR_LINES = Recording(said(ROLE, text("fine"), STOP).replace(b"\n", b"\r\n"), split=3)
OLD_MAC_LINES = Recording(said(ROLE, text("fine"), STOP).replace(b"\n", b"\r"))


def refused(status: int, message: str = "no", code: str | None = None) -> Recording:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Recording(body, status=status, kind="application/json")


NOT_A_STREAM = Recording(b'{"id": "x", "choices": []}', kind="application/json")
