"""Answers of a form that was asked for."""

from collections.abc import Mapping
from typing import Any, cast

from jsonschema import Draft202012Validator, SchemaError
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json

from app.agent.prompt import OutputSchema
from app.agent.scrub import scrub_json

Form = type[Any] | Mapping[str, JsonValue]
"""A type that Pydantic reads from a JSON object, or the JSON schema of one."""


class OutputRefused(Exception):
    """The answer is not of the form; the message says why, to the model."""


class Output:
    """The form of an agent's last answer. TypeError for one that is no JSON object's."""

    def __init__(self, form: Form) -> None:
        if isinstance(form, Mapping):
            self._adapter: TypeAdapter[Any] | None = None
            schema = dict(form)
            name = schema.get("title")
            self._validator = _validator(schema)
        else:
            self._adapter = TypeAdapter(form)
            schema = cast(dict[str, JsonValue], self._adapter.json_schema())
            name = form.__name__
            self._validator = None
        if schema.get("type") != "object":
            raise TypeError("the form of an answer is a JSON object's")
        described = schema.get("description")
        self.schema = OutputSchema(
            name if isinstance(name, str) and name else "answer",
            schema,
            described if isinstance(described, str) else "",
        )

    def read(self, text: str) -> JsonValue:
        """The value in an answer's text. OutputRefused if it is not of the form."""
        try:
            value = scrub_json(cast(JsonValue, from_json(_unfenced(text), allow_inf_nan=False)))
        except ValueError:
            raise OutputRefused("it is not valid JSON") from None
        if self._adapter is not None:
            return _read_by_type(self._adapter, value)
        assert self._validator is not None
        error = next(iter(self._validator.iter_errors(value)), None)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
        if error is not None:
            place = "/".join(str(step) for step in error.absolute_path) or "the value"  # pyright: ignore
            raise OutputRefused(f"{place} does not fit the schema ({error.validator})")  # pyright: ignore
        return value


def _validator(schema: dict[str, JsonValue]) -> Draft202012Validator:
    try:
        Draft202012Validator.check_schema(schema)  # pyright: ignore[reportUnknownMemberType]
    except SchemaError as error:
        raise TypeError("the form of an answer is no JSON schema") from error
    return Draft202012Validator(schema)


def _read_by_type(adapter: TypeAdapter[Any], value: JsonValue) -> JsonValue:
    try:
        read = adapter.validate_python(value)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        words = "; ".join(
            f"{'/'.join(str(step) for step in problem['loc']) or 'the value'}: {problem['msg']}"
            for problem in problems
        )
        raise OutputRefused(words) from None
    by_alias = isinstance(read, BaseModel)
    return cast(JsonValue, adapter.dump_python(read, mode="json", by_alias=by_alias))


def _unfenced(text: str) -> str:
    """Without the code fence that models like to put around JSON."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        return bare[bare.index("\n") + 1 : -3]
    return bare
