"""Both generations of released clients read streams of every kind, and hold what a fresh one is given."""

import asyncio
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import integers
from pydantic import JsonValue

from app.agent.events import Appended, MessageDone, RunOpened
from app.agui.connect import connect_live
from app.agui.fold import Fold
from app.agui.hydrate import hydrate
from app.agui.interrupts import wire_interrupt
from app.agui.translate import Translator
from app.clock import SystemClock
from app.conversation.entries import CustomEntry, MessageEntry
from app.conversation.interrupts import ChildRun, Interrupt
from app.conversation.messages import assistant_message
from app.conversation.outcomes import EndReason, RunEnd
from app.frames import Variants
from app.runs.log_memory import MemoryLog
from tests.agui.beside import State
from tests.agui.reducer import Client
from tests.agui.stories import Story, stories, wire_rows
from tests.interop.conftest import CURRENT, OLDER
from tests.services.node import Node

both_generations = pytest.mark.parametrize("client", [CURRENT, OLDER])


def captured(story: Story, *, legacy: bool) -> dict[str, Any]:
    """The stream of a story as that generation gets it, and what its client held before and is to hold."""
    translate = Translator(SystemClock()).translate
    chosen = [
        (frame.legacy if legacy else frame.current) if isinstance(frame, Variants) else frame
        for event in story.told()
        for frame in translate(event)
    ]
    told = [frame.decode() for frame in chosen if frame is not None]
    return {
        "text": "".join(f"id: 1.1.{n}\ndata: {frame}\n\n" for n, frame in enumerate(told, 1)),
        "sent": {"threadId": story.opened.thread_id, "runId": story.opened.run_id},
        "before": json.loads(hydrate(wire_rows(story.before), legacy=legacy)),
        "state": {} if story.opened.state_differs else story.opened.state,
        "stored": json.loads(hydrate(story.thread(), legacy=legacy)),
        "after": story.state.value,
    }


def joined(story: Story, place: int, *, legacy: bool) -> list[dict[str, Any]]:
    """The same by clients that join behind so many frames: a fresh one, and one that took those and lost its
    stream."""
    there = captured(story, legacy=legacy)
    log = MemoryLog(1, 1, story.opened.state)
    translate = Translator(SystemClock()).translate
    for event in story.told():
        log.append(translate(event))
    frames = list(log.frames(legacy=legacy))
    place = 1 + place % (len(frames) - 1)
    before, state = there["before"], story.opened.state
    fold = Fold.of(frames[:place], deepcopy(before), state)
    opening = connect_live(story.opened.thread_id, story.opened.run_id, fold, clock=SystemClock())
    again = [
        (frame.legacy if legacy else frame.current) if isinstance(frame, Variants) else frame
        for frame in opening
    ]
    told = [frame.decode() for frame in (*again, *frames[place:]) if frame is not None]
    partial = Client(before)
    partial.state = state
    partial.take(json.loads(frame) for frame in frames[:place])
    nothing: list[dict[str, Any]] = []
    fresh: dict[str, Any] = {}
    text = "".join(f"id: 1.1.{n}\ndata: {frame}\n\n" for n, frame in enumerate(told, 1))
    return [
        {**there, "text": text, "before": held, "state": known}
        for held, known in ((nothing, fresh), (partial.messages, partial.state))
    ]


def held(node: Node, packages: Path, client: str, told: Sequence[Story], file: Path) -> list[dict[str, Any]]:
    """What the client made of each story."""
    return taken(node, packages, client, [captured(story, legacy=client == OLDER) for story in told], file)


def taken(
    node: Node, packages: Path, client: str, streams: Sequence[dict[str, Any]], file: Path
) -> list[dict[str, Any]]:
    """What the client made of each stream."""
    file.write_text(json.dumps(streams))
    task = json.dumps({"client": client, "file": str(file)})
    found = asyncio.run(node.run_json(Path(__file__).parent / "hold.mjs", task, cwd=packages))
    return cast(list[dict[str, Any]], found)


@pytest.mark.requirement(
    "AGUI-01", "AGUI-04", "AGUI-05", "AGUI-08", "AGUI-12", "AGUI-13", "AGUI-18", "AGT-11"
)
@both_generations
def test_a_client_accepts_every_stream_and_holds_what_is_stored(
    node: Node, agui_clients: Path, tmp_path: Path, client: str
) -> None:
    told: list[Story] = []

    @given(stories())
    @settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
    def tell(story: Story) -> None:
        told.append(story)

    tell()
    for story, found in zip(
        told, held(node, agui_clients, client, told, tmp_path / "told.json"), strict=True
    ):
        problems = {kind: wrong for kind, wrong in found["problems"].items() if wrong}
        assert problems == {}, story


@pytest.mark.requirement("AGUI-15", "LIVE-02")
@both_generations
def test_a_client_that_joins_anywhere_holds_what_is_stored(
    node: Node, agui_clients: Path, tmp_path: Path, client: str
) -> None:
    told: list[tuple[Story, dict[str, Any]]] = []

    @given(stories(), integers(0, 1000))
    @settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
    def tell(story: Story, place: int) -> None:
        told.extend((story, stream) for stream in joined(story, place, legacy=client == OLDER))

    tell()
    streams = [stream for _, stream in told]
    results = taken(node, agui_clients, client, streams, tmp_path / "told.json")
    for (story, stream), found in zip(told, results, strict=True):
        problems = {kind: wrong for kind, wrong in found["problems"].items() if wrong}
        assert problems == {}, (stream, story)


@both_generations
def test_a_planted_difference_is_found(node: Node, agui_clients: Path, tmp_path: Path, client: str) -> None:
    answer = assistant_message("hello", id="m")
    sound = Story(
        RunOpened("thread", "run", "assistant", state={"n": None}),
        events=[MessageDone(answer), Appended(CustomEntry("note", 1, id="e"))],
        stored=[MessageEntry(answer), CustomEntry("note", 1, id="e")],
    )
    planted = {
        "": sound,
        "history": replace(sound, stored=[*sound.stored[:1], CustomEntry("note", 2, id="e")]),
        "snapshot": replace(sound, stored=sound.stored[1:]),
        "state": replace(sound, state=State({"n": 1})),
    }
    found = held(node, agui_clients, client, list(planted.values()), tmp_path / "told.json")
    for kind, one in zip(planted, found, strict=True):
        wrong = {name for name, words in one["problems"].items() if words}
        assert kind in wrong if kind else not wrong


@pytest.mark.requirement("AGUI-09")
@both_generations
def test_a_client_knows_what_a_paused_run_asks(
    node: Node, agui_clients: Path, tmp_path: Path, client: str
) -> None:
    asked = Interrupt(
        id="i1",
        reason="tool_call",
        call_id="c",
        expires_at=2_000_000_000_123_456_789,
        child=ChildRun(thread_id="t2", run_id="r2"),
        memory={"secret": 1},
    )
    story = Story(
        RunOpened("thread", "run", "assistant", state={"n": None}),
        end=RunEnd(EndReason.INTERRUPTED, interrupts=(asked,)),
    )
    (found,) = held(node, agui_clients, client, [story], tmp_path / "told.json")
    assert found["outcome"] == {"finished": "interrupt"}
    assert found["interrupts"] == [wire_interrupt(asked)]


@pytest.mark.parametrize("result", [0, {"a": None}])
@both_generations
def test_a_client_gets_the_structured_answer(
    node: Node, agui_clients: Path, tmp_path: Path, client: str, result: JsonValue
) -> None:
    story = Story(
        RunOpened("thread", "run", "assistant", state={"n": None}), end=RunEnd(EndReason.DONE, result=result)
    )
    (found,) = held(node, agui_clients, client, [story], tmp_path / "told.json")
    assert found["outcome"] == {"finished": "success", "result": result}
