"""AGENTS=module:attribute."""

import sys
from pathlib import Path

import pytest

from app.agent.agent import Agent
from app.agent.loading import check_agents, load_agents
from app.agent.models.demo import DemoModel
from app.errors import StartupRefused

SOURCE = """
from app.agent.agent import Agent
from app.agent.models.demo import DemoModel

own = DemoModel()
one = Agent("one")
two = Agent("two", model=own)
several = [one, two]
named = {"x": one, "y": two}
number = 5
kind = Agent
unfit = Agent("a/b")
again = Agent("one")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    name = f"agents_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    (tmp_path / f"broken_{name}.py").write_text("1 / 0")
    return name


def test_without_a_name_there_is_the_built_in_assistant() -> None:
    model = DemoModel()
    for spec in ("", " , "):
        agents = load_agents(spec, model)
        assert list(agents) == ["assistant"]
        agent = agents["assistant"]
        assert isinstance(agent, Agent)
        assert agent.model is model


def test_one_agent_a_list_or_a_dict_of_them_is_found_in_the_working_directory(module: str) -> None:
    model = DemoModel()
    for attribute in ("several", "named"):
        agents = load_agents(f"{module}:{attribute}", model)
        assert list(agents) == ["one", "two"]
        one, two = agents.values()
        assert isinstance(one, Agent)
        assert isinstance(two, Agent)
        assert one.model is model
        assert two.model is not model
    assert list(load_agents(f"{module}:two , {module}:one", model)) == ["two", "one"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{m}", "module:attribute"),
        ("{m}:", "module:attribute"),
        ("{m}:none", "no attribute none"),
        ("missing_{m}:one", "cannot be imported"),
        ("broken_{m}:one", "ZeroDivisionError"),
        ("{m}:number", "no agent"),
        ("{m}:kind", "no agent"),
        ("{m}:unfit", "'a/b'"),
        ("{m}:one,{m}:again", "two agents are named one"),
    ],
)
def test_what_cannot_be_used_is_refused_by_the_settings_name(module: str, spec: str, words: str) -> None:
    with pytest.raises(StartupRefused, match="AGENTS") as refused:
        load_agents(spec.format(m=module), DemoModel())
    assert words in refused.value.public


def test_agents_given_as_objects_have_models_of_their_own() -> None:
    agents = {"one": Agent("one", model=DemoModel()), "two": Agent("two")}
    with pytest.raises(StartupRefused, match="agent two has no model"):
        check_agents(agents)
    del agents["two"]
    assert check_agents(agents) is agents
