"""Captured streams, judged by two libraries that know nothing of ours."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from ag_ui.core import Event
from ag_ui_validate.pytest_plugin import validate_agui
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.main import create_app
from app.settings import Settings
from tests.agui.order import told
from tests.agui.stories import Story, stories
from tests.agui.test_translate import whole
from tests.interop.conftest import SCRIPTS, scripted
from tests.services.server import Serve
from tests.services.sse import SseFrame, all_frames

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
ENDING = [
    "text",
    "tool",
    "calls alone",
    "branches",
    "failing",
    "failing at once",
    "beside",
    "asking",
    "asking below",
    "client tools",
]
MAP: dict[str, Any] = {
    "name": "map",
    "description": "Shows a map.",
    "parameters": {"type": "object", "properties": {}},
}


async def _captured(serve: Serve, tmp_path: Path, script: str, version: str | None) -> list[SseFrame]:
    settings = Settings(data_dir=tmp_path / "data", port=0, database_url="sqlite://")
    base = await serve(create_app(settings, agents={"assistant": scripted(script)}))
    request: dict[str, Any] = {
        "threadId": "t1",
        "runId": "r1",
        "state": {},
        "messages": [{"id": "u1", "role": "user", "content": "Hello"}],
        "tools": [MAP],
        "context": [],
        "forwardedProps": {},
    }
    if version is not None:
        request["protocolVersion"] = version
    async with (
        httpx.AsyncClient(base_url=base, trust_env=False, timeout=30) as client,
        client.stream("POST", "/agents/assistant/run", json=request) as response,
    ):
        assert response.status_code == 200
        return await all_frames(response)


def _without_reopening(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events without the empty brackets that give a closed message its metadata.

    The validator wants each message to be opened once. An assistant message whose calls follow its text is
    opened again, empty, when all of it is known; the released clients allow that.
    """
    opened: set[str] = set()
    again: set[str] = set()
    kept: list[dict[str, Any]] = []
    for event in events:
        id = str(event.get("messageId"))
        if event["type"] == "TEXT_MESSAGE_START" and id in opened:
            again.add(id)
        elif event["type"] == "TEXT_MESSAGE_END" and id in again:
            again.discard(id)
        else:
            kept.append(event)
            opened |= {id} if event["type"] == "TEXT_MESSAGE_START" else set()
    return kept


@pytest.mark.requirement("AGUI-01", "AGUI-03")
@pytest.mark.parametrize("version", ["1.0", None])
@pytest.mark.parametrize("script", ENDING)
async def test_the_validator_finds_no_error_in_a_stream(
    serve: Serve, tmp_path: Path, script: str, version: str | None
):
    captured = await _captured(serve, tmp_path, script, version)
    events = _without_reopening([frame.data for frame in captured])
    report = validate_agui(events)
    assert [found for found in report.diagnostics if found.severity == "error"] == []
    assert report.internal_errors == []
    assert report.event_count == len(events)


@pytest.mark.requirement("AGUI-04")
@pytest.mark.parametrize("version", ["1.0", None])
@pytest.mark.parametrize("script", ENDING)
async def test_every_frame_is_an_event_of_the_protocols_own_library(
    serve: Serve, tmp_path: Path, script: str, version: str | None
):
    for frame in await _captured(serve, tmp_path, script, version):
        again = EVENT.validate_python(frame.data).model_dump(mode="json", by_alias=True)
        assert {name: again.get(name) for name in frame.data} == frame.data


def test_every_script_that_ends_by_itself_is_judged():
    assert set(SCRIPTS) == {*ENDING, "stopped"}


ABOUT_ARGUMENTS = {"AGUI204"}
"""Random arguments are no JSON."""
ABOUT_HISTORY = {"AGUI207"}
"""The call of a result may stand in an earlier run, where it waited for an answer."""
ABOUT_VERSION_1 = {"AGUI504"}
"""The validator does not know results in parts yet, which 1.0 has."""


@pytest.mark.requirement("AGUI-01", "AGUI-08")
@given(stories(), st.booleans())
def test_the_validator_finds_no_error_in_what_a_run_can_tell(story: Story, legacy: bool):
    report = validate_agui(_in_one_piece(told(whole(story), legacy=legacy)))
    errors = [found for found in report.diagnostics if found.severity == "error"]
    known = ABOUT_ARGUMENTS | ABOUT_HISTORY | (set[str]() if legacy else ABOUT_VERSION_1)
    assert [found for found in errors if found.rule not in known] == []
    assert report.internal_errors == []


def _in_one_piece(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with each text opened once, before its first piece, and closed behind its last."""
    places: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        if event["type"] in ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END"):
            places.setdefault(event["messageId"], []).append(place)
    inner = {place for found in places.values() for place in found[1:-1]}
    return [event for place, event in enumerate(events) if place not in inner]
