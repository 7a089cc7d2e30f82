"""Who said what, when several people and agents share a thread."""

import pytest

from app.agent.agent import Agent
from app.agent.models.base import CallPiece
from app.agent.models.scripted import ScriptedModel
from tests.services.chat import OpenChat


def look() -> str:
    """Looks."""
    return "Seen."


def prompt_of(model: ScriptedModel) -> list[tuple[str, str]]:
    return [(message.role.value, message.join_text()) for message in model.prompts[-1].messages]


@pytest.mark.requirement("AGT-18")
async def test_a_model_is_told_who_said_what_only_if_its_agent_asks_for_that(open_chat: OpenChat) -> None:
    calls = ["Looking.", CallPiece("0", "{}", name="look", call_id="c")]
    chef, told, plain = ScriptedModel(["Soup."]), ScriptedModel([calls, "Bread."]), ScriptedModel(["Tea."])
    agents = [
        Agent("chef", model=chef),
        Agent("told", model=told, tools=[look], attribution=True),
        Agent("plain", model=plain),
    ]
    chat = await open_chat(agents=agents)
    for number, name in enumerate(("chef", "told", "plain")):
        assert (await chat.post_run(chat.body("t", f"course {number}?"), agent=name)).status_code == 200
    assert prompt_of(told) == [
        ("user", "(Human) user: course 0?"),
        ("user", "(Agent) chef: Soup."),
        ("user", "(Human) user: course 1?"),
        ("assistant", "Looking."),
        ("tool_result", "Seen."),
    ]
    assert prompt_of(plain)[:2] == [("user", "course 0?"), ("assistant", "Soup.")]
    said = [content for role, content in await chat.texts("t") if role == "user"]
    assert said == ["course 0?", "course 1?", "course 2?"]
    assert not any("(Human)" in str(message) for message in await chat.messages("t"))
