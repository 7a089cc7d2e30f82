"""The demo model's structured answers: an object of the form asked for, filled from what was said."""

import json
import re
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from app.agent.prompt import OutputSchema

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DEEPEST = 16
"""How far a schema that contains itself is followed."""

Schema = Mapping[str, JsonValue]


def object_for(text: str, output: OutputSchema) -> str:
    """JSON of that form: numbers from the text in their order, the text itself where words are wanted."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return json.dumps(_Filler(output.schema, text, numbers).value(output.schema, 0), ensure_ascii=False)


class _Filler:
    def __init__(self, root: Schema, text: str, numbers: list[float]) -> None:
        self._root = root
        self._text = text
        self._numbers = numbers

    def value(self, schema: Schema, depth: int) -> JsonValue:
        schema = self._resolved(schema)
        for name in ("const", "default"):
            if name in schema:
                return schema[name]
        options = schema.get("enum")
        if isinstance(options, list) and options:
            return self._chosen(options)
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if isinstance(choices, list) and choices and "type" not in schema:
            return self.value(cast(Schema, choices[0]), depth + 1) if depth < _DEEPEST else None
        return self._of_type(schema, depth)

    def _of_type(self, schema: Schema, depth: int) -> JsonValue:
        given = schema.get("type")
        kind = given[0] if isinstance(given, list) and given else given
        if kind == "array":
            return self._items(schema, depth)
        if kind in ("integer", "number"):
            return self._number(schema, whole=kind == "integer")
        if kind == "boolean":
            return re.search(r"\b(no|not|never|false)\b", self._text, re.IGNORECASE) is None
        if kind == "string":
            return self._words(schema)
        return None if kind == "null" else self._members(schema, depth)

    def _members(self, schema: Schema, depth: int) -> JsonValue:
        members = cast("dict[str, Schema]", schema.get("properties") or {})
        required = cast("list[str]", schema.get("required") or [])
        wanted = required if depth >= _DEEPEST else list(members)
        return {
            name: self.value(members.get(name, {}), depth + 1) for name in wanted if depth <= 2 * _DEEPEST
        }

    def _items(self, schema: Schema, depth: int) -> JsonValue:
        least = cast(int, schema.get("minItems") or 0)
        item = cast(Schema, schema.get("items") or {"type": "string"})
        wanted = least if depth >= _DEEPEST else max(1, least)
        return [self.value(item, depth + 1) for _ in range(wanted)]

    def _number(self, schema: Schema, *, whole: bool) -> int | float:
        number = self._numbers.pop(0) if self._numbers else 1.0
        least, most = schema.get("minimum"), schema.get("maximum")
        if isinstance(least, int | float):
            number = max(number, least)
        if isinstance(most, int | float):
            number = min(number, most)
        return int(number) if whole or number.is_integer() else number

    def _words(self, schema: Schema) -> str:
        words = self._text.strip() or "nothing"
        longest = schema.get("maxLength")
        return words[:longest] if isinstance(longest, int) else words

    def _chosen(self, options: list[JsonValue]) -> JsonValue:
        return next((option for option in options if str(option).lower() in self._text.lower()), options[0])

    def _resolved(self, schema: Schema) -> Schema:
        """The schema behind a reference into the same document."""
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            found: JsonValue = cast(JsonValue, self._root)
            for step in reference.removeprefix("#/").split("/"):
                found = found.get(step) if isinstance(found, dict) else None
            schema = found if isinstance(found, dict) else {}
        return schema
