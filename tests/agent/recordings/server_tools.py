"""Streams of providers that ran a tool of their own: a search of the web, a program in a sandbox."""

import json
from typing import Any

from tests.agent.recordings.messages import START, block, end, words
from tests.agent.replay import Recording

SEARCH: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {},
    "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_0"},
}
FOUND: list[dict[str, Any]] = [
    {
        "type": "web_search_result",
        "title": "Weather in Basel",
        "url": "https://example.test/basel",
        "encrypted_content": "RW5jcnlwdGVkL+4=",
        "page_age": "2 days ago",
    },
    {
        "type": "web_search_result",
        "title": "Wetter – 北京 \U0001f600",
        "url": "https://example.test/b",
        "encrypted_content": "QUJD",
        "page_age": None,
    },
]
CITED: dict[str, Any] = {
    "type": "web_search_result_location",
    "cited_text": "It is sunny.",
    "encrypted_index": "SW5kZXg=",
    "title": "Weather in Basel",
    "url": "https://example.test/basel",
}
RAN: dict[str, Any] = {
    "type": "bash_code_execution_result",
    "stdout": "2.50\n",
    "stderr": "",
    "return_code": 0,
    "content": [],
}
NO_MORE: dict[str, Any] = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}


def search(index: int, given: Any, id: str = "srvtoolu_1", query: str = "weather Basel") -> bytes:
    pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ('{"query": "', query, '"}')]
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": id,
        "content": given,
        "caller": SEARCH["caller"],
    }
    return block(index, {**SEARCH, "id": id}, *pieces) + block(index + 1, result)


SEARCHED = Recording(
    START
    + words("I look it up.")
    + search(1, FOUND)
    + block(
        3,
        {"type": "text", "text": "", "citations": []},
        {"type": "citations_delta", "citation": CITED},
        {"type": "text_delta", "text": "It is sunny"},
    )
    + words(" in Basel.", index=4)
    + end("end_turn")
)
SEARCH_REFUSED = Recording(START + search(0, NO_MORE) + words("I cannot search.", index=2) + end("end_turn"))
RAN_CODE = Recording(
    START
    + block(
        0,
        {"type": "server_tool_use", "id": "srvtoolu_c", "name": "bash_code_execution", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"command": "python -c \\"print(2.50)\\""}'},
    )
    + block(1, {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_c", "content": RAN})
    + words("It is 2.50.", index=2)
    + end("end_turn")
)
NOBODY_ASKED = Recording(
    START
    + block(0, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": FOUND})
    + words("fine", index=1)
    + end("end_turn")
)
PAUSED = Recording(
    START
    + words("Wait. ")
    + block(1, SEARCH, {"type": "input_json_delta", "partial_json": '{"query": "weather Basel"}'})
    + end("pause_turn")
)
RESUMED = Recording(
    START
    + block(0, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND})
    + words("Sunny.", index=1)
    + end("end_turn")
)


def item(kind: str, number: int, **members: Any) -> bytes:
    data = {"type": kind, "sequence_number": number, **members}
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def response(status: str, output: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    counted: dict[str, Any] = {
        "input_tokens": 20, "output_tokens": 8, "total_tokens": 28,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 5},
    }  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": status, "model": "gpt-5",
        "output": output or [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "usage": counted if status == "completed" else None,
    }  # fmt: skip


REASONING: dict[str, Any] = {
    "id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "I should search."}],
    "encrypted_content": "gAAAAABsealed==",
}  # fmt: skip
WEB: dict[str, Any] = {
    "id": "ws_1", "type": "web_search_call", "status": "completed",
    "action": {"type": "search", "query": "weather Basel"},
}  # fmt: skip
SAID: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
}  # fmt: skip
CALLED: dict[str, Any] = {
    "id": "fc_1", "type": "function_call", "call_id": "call_r", "name": "get_weather",
    "arguments": '{"city":"Basel"}', "status": "completed",
}  # fmt: skip


def reasoned(at: int) -> bytes:
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    empty = {"type": "summary_text", "text": ""}
    return b"".join(
        [
            item("response.output_item.added", at, output_index=0, item={**REASONING, "summary": []}),
            item("response.reasoning_summary_part.added", at + 1, **place, part=empty),
            item("response.reasoning_summary_text.delta", at + 2, **place, delta="I should "),
            item("response.reasoning_summary_text.delta", at + 3, **place, delta="search."),
            item("response.reasoning_summary_text.done", at + 4, **place, text="I should search."),
            item("response.reasoning_summary_part.done", at + 5, **place, part=REASONING["summary"][0]),
            item("response.output_item.done", at + 6, output_index=0, item=REASONING),
        ]
    )


def searched(at: int, index: int) -> bytes:
    started = {"id": "ws_1", "type": "web_search_call", "status": "in_progress"}
    place = {"output_index": index, "item_id": "ws_1"}
    return b"".join(
        [
            item("response.output_item.added", at, output_index=index, item=started),
            item("response.web_search_call.in_progress", at + 1, **place),
            item("response.web_search_call.searching", at + 2, **place),
            item("response.web_search_call.completed", at + 3, **place),
            item("response.output_item.done", at + 4, output_index=index, item=WEB),
        ]
    )


def worded(at: int, index: int, text: str, id: str) -> bytes:
    place = {"item_id": id, "output_index": index, "content_index": 0}
    whole: dict[str, Any] = {
        **SAID,
        "id": id,
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    empty: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
    return b"".join(
        [
            item("response.output_item.added", at, output_index=index, item={**whole, "content": []}),
            item("response.content_part.added", at + 1, **place, part=empty),
            *(
                item("response.output_text.delta", at + 2, **place, delta=piece, logprobs=[])
                for piece in (text[:4], text[4:])
            ),
            item("response.output_text.done", at + 4, **place, text=text, logprobs=[]),
            item("response.content_part.done", at + 5, **place, part=whole["content"][0]),
            item("response.output_item.done", at + 6, output_index=index, item=whole),
        ]
    )


def called(at: int, index: int) -> bytes:
    place = {"item_id": "fc_1", "output_index": index}
    return b"".join(
        [
            item("response.output_item.added", at, output_index=index, item={**CALLED, "arguments": ""}),
            item("response.function_call_arguments.delta", at + 1, **place, delta='{"city":'),
            item("response.function_call_arguments.delta", at + 2, **place, delta='"Basel"}'),
            item("response.function_call_arguments.done", at + 3, **place, arguments=CALLED["arguments"]),
            item("response.output_item.done", at + 4, output_index=index, item=CALLED),
        ]
    )


def responded(*parts: bytes, output: list[dict[str, Any]]) -> Recording:
    return Recording(
        item("response.created", 0, response=response("in_progress"))
        + item("response.in_progress", 1, response=response("in_progress"))
        + b"".join(parts)
        + item("response.completed", 99, response=response("completed", output))
    )


RESPONSE_WITH_ALL = responded(
    reasoned(2),
    searched(10, 1),
    worded(20, 2, "Let me see.", "msg_1"),
    called(30, 3),
    output=[REASONING, WEB, SAID, CALLED],
)
RESPONSE_FINE = responded(worded(2, 0, "Sunny.", "msg_2"), output=[])
RESPONSE_CUT = Recording(
    item("response.created", 0, response=response("in_progress"))
    + item("response.output_item.added", 1, output_index=0, item={**SAID, "content": []})
    + item(
        "response.output_text.delta", 2, item_id="msg_1", output_index=0, content_index=0, delta="Half",
        logprobs=[],
    )
)  # fmt: skip
RESPONSE_FAILED = Recording(
    RESPONSE_CUT.body
    + item(
        "response.failed",
        3,
        response={**response("failed"), "error": {"code": "server_error", "message": "boom"}},
    )
)
