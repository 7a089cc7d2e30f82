"""Finds the agents that the setting AGENTS names."""

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import cast

from app.agent.agent import Agent, no_model
from app.agent.builtin import assistant
from app.agent.context import Runnable
from app.agent.models.base import Model
from app.conversation.ids import is_id
from app.errors import StartupRefused

_MEMBERS = ("name", "description", "capabilities", "accepts", "recall", "respond")


def load_agents(spec: str, model: Model, instructions: str = "") -> dict[str, Runnable]:
    """The agents by name, in the order named; agents made without a model get `model`.

    `spec` is `module:attribute`, several of them separated by commas; an attribute holds one agent, a list
    or a dict of them. Modules are found in the working directory too. An empty spec is the built-in
    `assistant`. StartupRefused, naming AGENTS, for all that cannot be used.
    """
    agents: dict[str, Runnable] = {}
    for place in (part.strip() for part in spec.split(",")):
        if place:
            for agent in _agents_at(place):
                _check_name(agent.name, place)
                if agent.name in agents:
                    raise StartupRefused(f"VERBATIM_AGENTS: two agents are named {agent.name}; rename one.")
                agents[agent.name] = _with_model(agent, model)
    if agents:
        return agents
    if spec.strip(" ,"):
        raise StartupRefused(f"VERBATIM_AGENTS: {spec} holds no agent.")
    built_in = assistant(model, instructions)
    return {built_in.name: built_in}


def check_agents(agents: Mapping[str, Runnable]) -> Mapping[str, Runnable]:
    """The agents, if each could answer. StartupRefused if one has no model: what is given to the server as
    objects gets none."""
    for agent in agents.values():
        if isinstance(agent, Agent) and agent.model is None:
            raise StartupRefused(f"The {no_model(agent.name)}.")
    return agents


def _agents_at(place: str) -> list[Runnable]:
    module_name, colon, attribute = place.partition(":")
    if not colon or not module_name or not attribute:
        raise StartupRefused(
            f"VERBATIM_AGENTS: {place} is not of the form module:attribute, such as my_agents:agents."
        )
    if not hasattr(module := _import(module_name, place), attribute):
        raise StartupRefused(f"VERBATIM_AGENTS: module {module_name} has no attribute {attribute}.")
    found: object = getattr(module, attribute)
    if isinstance(found, Mapping):
        found = list(cast(Mapping[object, object], found).values())
    items = list(cast(Iterable[object], found)) if isinstance(found, list | tuple | set) else [found]
    return [_as_agent(item, place) for item in items]


def _import(name: str, place: str) -> object:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise StartupRefused(
            f"VERBATIM_AGENTS: {place} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _as_agent(item: object, place: str) -> Runnable:
    if isinstance(item, type) or not all(hasattr(item, member) for member in _MEMBERS):
        raise StartupRefused(
            f"VERBATIM_AGENTS: {place} holds {type(item).__name__}, which is no agent: "
            f"it needs {', '.join(_MEMBERS)}."
        )
    return cast(Runnable, item)


def _check_name(name: object, place: str) -> None:
    if not isinstance(name, str) or not is_id(name):
        raise StartupRefused(
            f"VERBATIM_AGENTS: {place} holds an agent with the name {name!r}, which cannot be used."
        )


def _with_model(agent: Runnable, model: Model) -> Runnable:
    return agent.with_model(model) if isinstance(agent, Agent) and agent.model is None else agent
