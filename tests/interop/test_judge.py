"""The judge of streams finds what is planted: a test that finds nothing wrong must be able to."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import CURRENT, OLDER
from tests.services.node import Node

AT = 1_700_000_000_000
SOUND: list[dict[str, Any]] = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", "timestamp": AT},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "timestamp": AT},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi", "timestamp": AT},
    {"type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": {"createdAt": None}, "timestamp": AT},
    {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "timestamp": AT},
]


def _stream(events: list[dict[str, Any]]) -> str:
    frames = [f"id: 1.1.{n}\ndata: {json.dumps(event)}\n\n" for n, event in enumerate(events, 1)]
    return ": alive\n\n".join(frames)


def _with(place: int, **members: Any) -> str:
    return _stream([{**event, **members} if n == place else event for n, event in enumerate(SOUND)])


def _without(*places: int) -> str:
    return _stream([event for n, event in enumerate(SOUND) if n not in places])


async def _judged(node: Node, packages: Path, text: str, client: str) -> list[str]:
    task = {"text": text, "sent": {"threadId": "t", "runId": "r"}, "client": client}
    found = await node.run_json(Path(__file__).parent / "judge.mjs", json.dumps(task), cwd=packages)
    assert isinstance(found, list)
    return [str(sentence) for sentence in found]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


@pytest.mark.parametrize("client", [CURRENT, OLDER])
async def test_a_sound_stream_is_judged_sound(node: Node, agui_clients: Path, client: str):
    assert await _judged(node, agui_clients, _stream(SOUND), client) == []


PLANTED = {
    "carriage returns": (_stream(SOUND).replace("\n", "\r\n"), "carriage return"),
    "a cut last frame": (_stream(SOUND).removesuffix("\n"), "not ended"),
    "no position": (_stream(SOUND).replace("id: 1.1.2\n", ""), "lines data"),
    "a gap": (_stream(SOUND).replace("id: 1.1.3", "id: 1.1.4"), "position 4"),
    "a null": (_with(1, name=None), "name is null"),
    "null metadata": (_with(3, metadata=None), "metadata is null"),
    "a fractional timestamp": (_with(2, timestamp=AT + 0.5), "timestamp"),
    "seconds": (_with(2, timestamp=1_700_000_000), "not in milliseconds"),
    "no timestamp": (_with(2, timestamp=None), "timestamp"),
    "a missing member": (_with(2, delta=None), "delta"),
    "no end of the message": (_without(3), "never closed"),
    "text before its start": (_without(1), "out of order"),
    "no end of the run": (_without(4), "the last event"),
    "no start of the run": (_without(0), "the first event"),
    "another run": (_with(0, runId="x"), "runId x"),
    "another thread at the end": (_with(4, threadId="x"), "threadId x"),
    "no version": (_with(0, protocolVersion="0.9"), "protocolVersion 0.9"),
}


@pytest.mark.parametrize(("text", "finding"), PLANTED.values(), ids=PLANTED)
async def test_a_planted_fault_is_found(node: Node, agui_clients: Path, text: str, finding: str):
    found = await _judged(node, agui_clients, text, CURRENT)
    assert any(finding in sentence for sentence in found), found
