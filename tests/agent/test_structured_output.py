"""An answer in a form that was asked for: how each provider is asked, and what the built-in model says."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
from pydantic import BaseModel, Field, JsonValue

from app.agent.direct import generate_text
from app.agent.models.demo import DemoModel
from app.agent.models.scripted import ScriptedModel
from app.agent.prompt import OutputSchema, Prompt, ToolDefinition
from app.conversation.messages import tool_result_message, user_message
from tests.agent.asking import model_at
from tests.agent.recordings import chat, messages
from tests.agent.recordings import server_tools as responses
from tests.agent.replay import Recording, provider

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
WEATHER = OutputSchema("weather", SCHEMA, "The weather of one city.")
TOOL = ToolDefinition("get_weather", "Tells the weather.", {"type": "object", "properties": {}})
ANSWER = '{"city": "Basel", "degrees": 21}'


def prompt(output: OutputSchema = WEATHER, text: str = "hi", system: str = "Be good.") -> Prompt:
    return Prompt(system, [user_message(text)], (TOOL,), output)


async def asked(spec: str, recording: Recording) -> tuple[dict[str, Any], str]:
    """The request, and the text of the answer."""
    async with provider(recording) as server, model_at(server.address, spec) as model:
        message = await generate_text(prompt(), model)
        return server.requests[0], message.join_text()


async def test_chat_completions_are_asked_by_their_response_format() -> None:
    request, text = await asked("openai:model-a", Recording(chat.said(chat.text(ANSWER), chat.STOP)))
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "weather",
            "description": "The weather of one city.",
            "schema": SCHEMA,
            "strict": True,
        },
    }
    assert request["tools"][0]["function"]["name"] == "get_weather"
    assert text == ANSWER


async def test_what_need_not_be_said_is_not_made_obligatory() -> None:
    loose: dict[str, JsonValue] = {"type": "object", "properties": {"note": {"type": "string"}}}
    async with provider(chat.FINE) as server, model_at(server.address, "openai:model-a") as model:
        await generate_text(prompt(OutputSchema("note", loose)), model)
    asked_for = server.requests[0]["response_format"]["json_schema"]
    assert asked_for["strict"] is False
    assert asked_for["schema"]["properties"] == loose["properties"]
    assert "required" not in asked_for["schema"]


async def test_responses_are_asked_by_their_text_format() -> None:
    request, text = await asked("openai-responses:gpt-5", responses.RESPONSE_FINE)
    assert request["text"]["format"] == {
        "type": "json_schema",
        "name": "weather",
        "description": "The weather of one city.",
        "schema": SCHEMA,
        "strict": True,
    }
    assert text == "Sunny."


async def test_claude_is_asked_in_its_own_way_where_it_has_one() -> None:
    request, _ = await asked("anthropic:claude-opus-4-8", messages.SUNNY)
    asked_for = request["output_config"]["format"]
    assert asked_for["type"] == "json_schema"
    assert asked_for["schema"] == SCHEMA
    assert request["system"] == [{"type": "text", "text": "Be good."}]


async def test_a_model_without_such_a_way_is_asked_in_words() -> None:
    request, _ = await asked("anthropic:claude-a", messages.SUNNY)
    assert "output_config" not in request
    system = json.dumps(request["system"])
    assert "Be good." in system
    for words in ("degrees", "additionalProperties", "weather"):
        assert words in system


class Place(BaseModel):
    name: str = Field(max_length=5)
    inner: "Place | None" = None


class Report(BaseModel):
    title: str
    count: int = Field(ge=10)
    share: float
    sure: bool
    mood: str = Field(json_schema_extra={"enum": ["grim", "sunny"]})
    places: list[Place]


async def test_the_demo_model_gives_an_object_of_the_form_filled_from_what_was_said() -> None:
    form = OutputSchema("report", Report.model_json_schema())
    said = await generate_text(prompt(form, "a sunny day, 3 of 2.5"), DemoModel(delay=0))
    told = json.loads(said.join_text())
    jsonschema.validate(told, form.schema)
    report = Report.model_validate(told)
    assert (report.title, report.count, report.share) == ("a sunny day, 3 of 2.5", 10, 2.5)
    assert (report.mood, report.sure) == ("sunny", True)


async def test_the_demo_model_calls_its_tools_first_and_then_answers_in_the_form() -> None:
    asking = prompt(text="weather in Basel please")
    first = await generate_text(asking, DemoModel(delay=0))
    (call,) = first.tool_calls()
    result = tool_result_message(call.id, call.name, "21 degrees")
    then = replace(asking, messages=[*asking.messages, first, result])
    told = json.loads((await generate_text(then, DemoModel(delay=0))).join_text())
    jsonschema.validate(told, SCHEMA)


async def test_a_scripted_model_is_given_the_form() -> None:
    script = ScriptedModel([ANSWER])
    assert (await generate_text(prompt(), script)).join_text() == ANSWER
    assert script.prompts[0].output == WEATHER
