"""Which tools the demo model calls for what a person wrote, and with what arguments."""

import re
from collections.abc import Callable, Sequence
from typing import cast

from pydantic import JsonValue

from app.agent.prompt import ToolDefinition

Arguments = dict[str, JsonValue]

_CITIES = {
    "zurich": "Europe/Zurich",
    "basel": "Europe/Zurich",
    "london": "Europe/London",
    "paris": "Europe/Paris",
    "berlin": "Europe/Berlin",
    "new york": "America/New_York",
    "san francisco": "America/Los_Angeles",
    "tokyo": "Asia/Tokyo",
    "sydney": "Australia/Sydney",
    "delhi": "Asia/Kolkata",
}
_ZONE = re.compile(r"\b([A-Z][A-Za-z]+/[A-Z][A-Za-z_]+)\b")
_EXPRESSION = re.compile(r"[-(]*\d[\d\s.()]*(?:[-+*/%]{1,2}\s*[-(]*\s*\d[\d\s.()]*)+")
_PLACE = re.compile(r"\b(?:in|for|at|of)\s+([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
_NUMBER = re.compile(r"\d+")
_COMMON = frozenset({"get", "set", "current", "tool", "list", "make", "find", "with", "from", "this", "that"})


def calls_for(text: str, tools: Sequence[ToolDefinition]) -> list[tuple[str, Arguments]]:
    """The calls that the text asks for, as (tool name, arguments), in the order of the tools."""
    calls: list[tuple[str, Arguments]] = []
    for tool in tools:
        read = _KNOWN.get(tool.name)
        arguments = read(text) if read is not None else _guess(text, tool)
        if arguments is not None:
            calls.append((tool.name, arguments))
    return calls


def _time(text: str) -> Arguments | None:
    if not re.search(r"\b(time|clock|date)\b", text, re.IGNORECASE):
        return None
    if zone := _ZONE.search(text):
        return {"zone": zone[1]}
    lower = text.lower()
    return {"zone": next((zone for city, zone in _CITIES.items() if city in lower), "UTC")}


def _sum(text: str) -> Arguments | None:
    found = _EXPRESSION.search(text)
    return {"expression": found[0].strip()} if found else None


def _dice(text: str) -> Arguments | None:
    if not re.search(r"\b(dice|die|roll)\b", text, re.IGNORECASE):
        return None
    sides = re.search(r"\bd(\d+)\b|(\d+)[- ]sided", text)
    count = re.search(r"\b(\d+)\s*(?:dice|d\d)", text)
    arguments: Arguments = {"sides": int(sides[1] or sides[2]) if sides else 6}
    return {**arguments, "count": int(count[1])} if count else arguments


_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]")
# fmt: off
_SMALL = frozenset([
    "a", "an", "and", "any", "are", "at", "can", "could", "do", "does", "for", "give", "have", "has", "how",
    "i", "in", "is", "it", "left", "many", "me", "much", "my", "of", "on", "or", "please", "show", "some",
    "tell", "that", "the", "there", "these", "this", "those", "to", "want", "was", "we", "were", "what",
    "when", "where", "which", "who", "will", "with", "you",
])
# fmt: on
_KNOWN: dict[str, Callable[[str], Arguments | None]] = {
    "current_time": _time,
    "calculate": _sum,
    "roll_dice": _dice,
}


def _guess(text: str, tool: ToolDefinition) -> Arguments | None:
    """For somebody's own tool: it is meant where a word of its name is written."""
    words = set(re.findall(r"\w+", text.lower()))
    names = {part for part in re.split(r"[\W_]+", tool.name.lower()) if len(part) > 2} - _COMMON
    if not names & words:
        return None
    members = cast(dict[str, Arguments], tool.parameters.get("properties") or {})
    required = cast(list[str], tool.parameters.get("required") or [])
    return {name: _value(text, members.get(name, {}), names) for name in required}


def _value(text: str, schema: Arguments, names: set[str]) -> JsonValue:
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return next((option for option in options if str(option).lower() in text.lower()), options[0])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        number = _NUMBER.search(text)
        return int(number[0]) if number else 1
    plain: dict[str, JsonValue] = {"boolean": True, "array": [], "object": {}}
    if isinstance(kind, str) and kind in plain:
        return plain[kind]
    return _subject(text, names)


def _subject(text: str, names: set[str]) -> str:
    """What is quoted, or a place, or the first word that is neither small nor the tool's own."""
    if named := _QUOTED.search(text) or _PLACE.search(text):
        return named[1]
    words = (word for word in re.findall(r"[\w'-]+", text) if word.lower() not in _SMALL | names)
    return next(words, text.strip())
