"""Answers of a form that was asked for."""

import pytest
from pydantic import BaseModel, JsonValue

from app.agent.agent import Agent
from app.agent.events import AgentEvent, Appended
from app.agent.models.scripted import ScriptedModel
from app.agent.structured import Output
from app.conversation.entries import MessageEntry
from app.conversation.messages import Injected, user_message
from app.conversation.outcomes import EndReason, RunStatus
from tests.agent.running import QUICK, bounded, end_of


class City(BaseModel):
    """A place."""

    name: str
    people: int


SCHEMA: dict[str, JsonValue] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def told(agent: Agent) -> list[AgentEvent]:
    return [event async for event in bounded(agent.run("go"))]


async def test_the_answer_is_read_and_given_with_the_end() -> None:
    model = ScriptedModel(['```json\n{"name": "Basel", "people": "170000"}\n```'])
    events = await told(Agent("bot", model=model, output=City, limits=QUICK))
    assert end_of(events).result == {"name": "Basel", "people": 170000}
    schema = model.prompts[0].output
    assert schema is not None
    assert (schema.name, schema.description) == ("City", "A place.")


async def test_an_answer_without_the_form_is_asked_for_again_and_the_request_is_not_kept() -> None:
    model = ScriptedModel(["Basel, I think", '{"n": "x"}', '{"n": 4}'])
    agent = Agent("bot", model=model, output=SCHEMA, limits=QUICK)
    events = await told(agent)
    assert end_of(events).result == {"n": 4}
    notes = [event.entry for event in events if isinstance(event, Appended)]
    assert all(
        isinstance(note, MessageEntry) and note.message.injected is Injected.EPHEMERAL for note in notes
    )
    assert "not valid JSON" in model.prompts[1].messages[-1].join_text()
    assert "n does not fit" in model.prompts[2].messages[-1].join_text()
    assert len(agent.messages()) == 4


async def test_a_model_that_never_gives_the_form_fails_the_run() -> None:
    events = await told(Agent("bot", model=ScriptedModel(["no"] * 9), output=SCHEMA, limits=QUICK))
    assert (end_of(events).reason, end_of(events).status) == (EndReason.OUTPUT_INVALID, RunStatus.FAILED)
    assert end_of(events).result is None


async def test_what_a_hook_appends_behind_the_answer_does_not_spoil_it() -> None:
    agent = Agent(
        "bot",
        model=ScriptedModel(['{"n": 1}']),
        output=SCHEMA,
        limits=QUICK,
        after_turn=lambda _: [user_message("noted")],
    )
    assert end_of(await told(agent)).result == {"n": 1}


@pytest.mark.parametrize("form", [{"type": "array"}, {"type": 7}, list[int]])
def test_a_form_that_is_no_objects_is_refused(form: type) -> None:
    with pytest.raises(TypeError, match=r"form of an answer"):
        Output(form)
