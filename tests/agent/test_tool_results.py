"""What a tool gives back, as a model reads it, and what a tool may know of its run."""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date

import pytest
from pydantic import BaseModel

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import ToolContext, as_tool
from app.conversation.blocks import Image, Reminder, Text, UrlSource
from app.conversation.messages import Message
from tests.agent.asking import call
from tests.agent.running import collect, context, kept, texts


class Place(BaseModel):
    city: str
    zip: int | None = None


@dataclass
class Reading:
    at: date
    degrees: float


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("plain", "plain"),
        (None, ""),
        ("", ""),
        (5, "5"),
        ({"a": [1, None, True]}, '{"a":[1,null,true]}'),
        (Place(city="Basel"), '{"city":"Basel","zip":null}'),
        (Reading(date(2026, 5, 1), float("nan")), '{"at":"2026-05-01","degrees":null}'),
        ([float("inf"), -float("inf")], "[null,null]"),
        ([], "[]"),
        ("nul \x00 half \ud83d whole \ud83d\ude00", "nul \ufffd half \ufffd whole \U0001f600"),
        ({"k\x00": "\udc00"}, '{"k\ufffd":"\ufffd"}'),
    ],
)
async def test_what_a_function_returns_is_read_as_text_or_json(given: object, read: str) -> None:
    def give() -> object:
        return given

    result = await call(give)
    assert result.join_text() == read
    assert not result.is_error
    assert Message.model_validate_json(result.to_json()) == result


async def test_blocks_are_kept_as_they_are() -> None:
    picture = Image(source=UrlSource(value="http://example.test/a.png"))

    def several() -> list[object]:
        return [Text(text="see\x00"), picture, Reminder(text="hush", origin="test")]

    def one() -> Image:
        return picture

    result = await call(several)
    assert result.content == (Text(text="see\ufffd"), picture, Reminder(text="hush", origin="test"))
    assert (await call(one)).content == (picture,)


async def test_a_value_without_a_json_form_is_a_failure_of_the_tool() -> None:
    def odd() -> object:
        return object()

    result = await call(odd)
    assert result.is_error
    assert result.join_text() == "Tool odd failed."


async def test_a_tool_may_ask_which_run_it_serves_and_cannot_change_its_state() -> None:
    seen: list[ToolContext] = []

    def look(run: ToolContext) -> str:
        seen.append(run)
        assert isinstance(run.state, dict)
        run.state["page"] = 99
        return str(run.sender_id)

    serving = context("go")
    model = ScriptedModel([[CallPiece("0", name="look", call_id="c")], "end"])
    told = await collect(Agent("bot", model=model, tools=[look]).respond(serving))
    assert texts(kept(told))[1] == "ann"
    (run,) = seen
    assert (run.namespace, run.thread_id, run.run_id, run.call_id) == ("default", "thread-1", "run-1", "c")
    assert serving.state == {"page": 3}
    assert as_tool(look).definition.parameters["properties"] == {}


async def test_a_blocking_function_sees_the_context_variables_of_the_run() -> None:
    mark: ContextVar[str] = ContextVar("mark", default="none")

    def look() -> str:
        return mark.get()

    mark.set("here")
    assert (await call(look)).join_text() == "here"
