"""Tools: what a model is told of them, how they are run, and what it reads of their failures."""

import asyncio
import logging
import threading
from datetime import date
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.tools import Tool, ToolContext, ToolError, as_tool, tool
from tests.agent.asking import call
from tests.agent.running import answer, kept, texts


class Place(BaseModel):
    city: str
    zip: int | None = None


@pytest.mark.requirement("AGT-13")
def test_the_schema_comes_from_the_signature_and_the_words_from_the_docstring() -> None:
    async def forecast(
        run: ToolContext,
        place: Place,
        days: Annotated[int, Field(ge=1, le=14)] = 3,
        unit: Literal["c", "f"] = "c",
    ) -> str:
        """Tells the weather to come.

        Only for places on earth.

        Args:
            place: where, as exactly
                as you know it
            days (int): how many days
            unit: degrees

        Returns:
            Words.
        """
        return ""

    made = as_tool(forecast).definition
    assert made.name == "forecast"
    assert made.description.startswith("Tells the weather to come.\n\nOnly for places on earth.")
    assert "how many days" not in made.description
    assert made.parameters["required"] == ["place"]
    assert made.parameters["additionalProperties"] is False
    members = made.parameters["properties"]
    assert isinstance(members, dict)
    assert list(members) == ["place", "days", "unit"]
    assert members["days"] == {
        "type": "integer", "minimum": 1, "maximum": 14, "default": 3, "description": "how many days",
    }  # fmt: skip
    assert members["unit"]["enum"] == ["c", "f"]  # type: ignore[index]
    assert members["place"]["description"] == "where, as exactly as you know it"  # type: ignore[index]


def test_a_docstring_in_the_sphinx_style_is_read_too() -> None:
    def add(a: int, b: int) -> int:
        """Adds.

        :param a: the first
        :param int b: the second
        :returns: the sum
        """
        return a + b

    made = as_tool(add).definition
    assert made.description == "Adds."
    members = made.parameters["properties"]
    assert [member["description"] for member in members.values()] == ["the first", "the second"]  # type: ignore[union-attr,index,call-overload]


@pytest.mark.parametrize("name", ["json", "schema", "copy", "model_dump", "_private"])
async def test_any_parameter_name_will_do(name: str) -> None:
    scope: dict[str, object] = {}
    exec(f"def odd({name}: int) -> int:\n    return {name} + 1", scope)
    result = await call(scope["odd"], f'{{"{name}": 4}}')  # type: ignore[arg-type]
    assert result.join_text() == "5"


def test_a_function_whose_parameters_cannot_be_named_is_no_tool() -> None:
    def many(*numbers: int) -> int:
        return sum(numbers)

    def loose(**given: int) -> int:
        return len(given)

    def odd(thread: threading.Thread) -> None:
        return None

    for function in (many, loose, odd):
        with pytest.raises(TypeError):
            as_tool(function)


def test_two_tools_of_one_name_are_refused() -> None:
    def a() -> None:
        return None

    with pytest.raises(ValueError, match="two tools"):
        Agent("bot", tools=[a, tool(name="a")(a)])


def test_the_decorator_renames_describes_and_limits() -> None:
    @tool(name="sum_up", description="Adds two numbers.", timeout=2)
    def add(a: int, b: int) -> int:
        return a + b

    assert isinstance(add, Tool)
    assert (add.name, add.definition.description, add.timeout) == ("sum_up", "Adds two numbers.", 2)


@pytest.mark.requirement("AGT-13")
async def test_arguments_arrive_typed_and_missing_ones_take_their_defaults() -> None:
    def describe(place: Place, day: date, loud: bool = False) -> str:
        return f"{type(place).__name__} {place.city} {day.isoformat()} {loud}"

    result = await call(describe, '{"place": {"city": "Basel"}, "day": "2026-05-01"}')
    assert result.join_text() == "Place Basel 2026-05-01 False"
    assert not result.is_error


@pytest.mark.requirement("AGT-13")
@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    def noon() -> str:
        return "noon"

    assert (await call(noon, arguments)).join_text() == "noon"


@pytest.mark.requirement("AGT-13")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"city": 5}', "city: Input should be a valid string"),
        ("{}", "city: Field required"),
        ('{"city": "Basel", "secret": "s3"}', "secret: Extra inputs are not permitted"),
        ('{"city": "Ba', "not valid JSON"),
        ("[1]", "not a JSON object"),
        ("NaN", "not valid JSON"),
        ("[" * 5000, "not valid JSON"),
    ],
)
async def test_arguments_that_do_not_fit_become_an_error_the_model_reads(
    arguments: str, complaint: str
) -> None:
    def weather(city: str) -> str:
        return city

    result = await call(weather, arguments)
    assert result.is_error
    assert complaint in result.join_text()
    assert "s3" not in result.join_text()


@pytest.mark.requirement("AGT-13")
async def test_an_unknown_tool_becomes_an_error_that_names_those_there_are() -> None:
    def weather(city: str) -> str:
        return city

    result = await call(weather, name="wether")
    assert result.is_error
    assert "no tool named wether" in result.join_text()
    assert "weather" in result.join_text()
    assert result.tool_name == "wether"


@pytest.mark.requirement("AGT-13")
async def test_a_tool_error_is_read_by_the_model_and_any_other_exception_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def polite() -> str:
        raise ToolError("the sea is closed")

    def broken() -> str:
        raise RuntimeError("password=hunter2")

    assert "the sea is closed" in (await call(polite)).join_text()
    with caplog.at_level(logging.ERROR):
        result = await call(broken)
    assert result.is_error
    assert result.join_text() == "Tool broken failed."
    assert "hunter2" in caplog.text


@pytest.mark.requirement("AGT-13")
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("threaded", [False, True])
async def test_a_tool_that_raises_what_ends_programs_or_tasks_fails_alone(
    kind: type[BaseException], threaded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def leaving() -> str:
        raise kind

    def leaving_thread() -> str:
        raise kind

    with caplog.at_level(logging.ERROR):
        result = await call(leaving_thread if threaded else leaving)
    assert result.is_error
    assert result.join_text() == f"Tool {'leaving_thread' if threaded else 'leaving'} failed."
    assert kind.__name__ in caplog.text


@pytest.mark.requirement("AGT-13")
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_tool_that_takes_too_long_becomes_an_error(stubborn: bool) -> None:
    release = asyncio.Event()

    @tool(timeout=0.01)
    async def endless() -> str:
        while True:
            try:
                await release.wait()
                return "late"
            except asyncio.CancelledError:
                if not stubborn:
                    raise

    result = await call(endless)
    release.set()
    assert result.is_error
    assert "did not finish within 0.01 seconds" in result.join_text()


@pytest.mark.requirement("AGT-13")
async def test_a_blocking_function_that_hangs_holds_up_neither_the_run_nor_others() -> None:
    release = threading.Event()

    @tool(timeout=0.01)
    def hang() -> str:
        release.wait(10)
        return "late"

    results = [await call(hang) for _ in range(12)]
    release.set()
    assert all(result.is_error for result in results)


@pytest.mark.requirement("AGT-13")
async def test_several_calls_run_side_by_side_and_their_results_stand_in_call_order() -> None:
    others = asyncio.Barrier(3)
    ended: list[str] = []

    async def meet(name: str, turns: int) -> str:
        await others.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        ended.append(name)
        return name

    pieces = [
        CallPiece(str(number), f'{{"name":"{name}","turns":{turns}}}', name="meet", call_id=name)
        for number, (name, turns) in enumerate([("a", 30), ("b", 15), ("c", 0)])
    ]
    told = await answer(Agent("bot", model=ScriptedModel([pieces, "end"]), tools=[meet]), "go")
    assert ended == ["c", "b", "a"]
    assert texts(kept(told))[1:] == ["a", "b", "c", "end"]


async def test_blocking_functions_run_side_by_side_too() -> None:
    both = threading.Barrier(2)

    def meet() -> str:
        both.wait(10)
        return threading.current_thread().name

    pieces = [CallPiece(str(number), name="meet", call_id=str(number)) for number in range(2)]
    told = await answer(Agent("bot", model=ScriptedModel([pieces, "end"]), tools=[meet]), "go")
    assert texts(kept(told))[1:] == ["tool", "tool", "end"]
