"""What an agent says of itself: only what is true, in the shape of AG-UI's AgentCapabilities."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from pydantic import JsonValue

if TYPE_CHECKING:
    from app.agent.agent import Agent


def capabilities_of(agent: "Agent") -> Mapping[str, JsonValue]:
    """What is not declared is not promised."""
    return {
        "identity": _identity(agent),
        "tools": _tools(agent),
        "multimodal": _multimodal(agent.accepts()),
        "execution": _execution(agent),
        "output": {"structuredOutput": agent.gives_structure},
        "state": {"snapshots": True, "deltas": agent.toolbox.uses_context, "persistentState": True},
        "multiAgent": _multi_agent(agent),
        "humanInTheLoop": {
            "supported": agent.toolbox.uses_context or agent.toolbox.asks_first,
            "approvals": agent.toolbox.asks_first,
            "approveWithEdits": agent.toolbox.asks_first,
            "interrupts": agent.toolbox.uses_context or agent.toolbox.asks_first,
        },
    }


def _identity(agent: "Agent") -> dict[str, JsonValue]:
    identity: dict[str, JsonValue] = {"name": agent.name, "type": "verbatim", "version": version("verbatim")}
    return {**identity, "description": agent.description} if agent.description else identity


def _tools(agent: "Agent") -> dict[str, JsonValue]:
    items: list[JsonValue] = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in agent.toolbox.definitions
    ]
    return {"supported": True, "items": items, "parallelCalls": True, "clientProvided": True}


def _multimodal(takes: frozenset[str]) -> dict[str, JsonValue]:
    return {
        "input": {
            **{kind: kind in takes for kind in ("image", "audio", "video")},
            "pdf": "document" in takes,
        },
        "output": {"image": False, "audio": False},
    }


def _execution(agent: "Agent") -> dict[str, JsonValue]:
    execution: dict[str, JsonValue] = {"maxIterations": agent.limits.turns}
    seconds = agent.limits.run_seconds
    return execution if seconds is None else {**execution, "maxExecutionTime": int(seconds * 1000)}


def _multi_agent(agent: "Agent") -> dict[str, JsonValue]:
    targets = agent.handoffs
    shown: list[JsonValue] = [
        {"name": target.name, "description": target.description}
        if target.description
        else {"name": target.name}
        for target in targets
    ]
    return {"supported": bool(targets), "handoffs": bool(targets), "subagents": shown}
