"""What all stored words share: frozen, camelCase in JSON, empty fields left out."""

from typing import Annotated, Any, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.alias_generators import to_camel

from app.clock import Instant, format_instant, parse_instant


class Words(BaseModel):
    """A frozen value that survives JSON both ways.

    Reading takes camelCase or snake_case and keeps members it does not know; writing gives camelCase and
    leaves out every field that holds its default, except the `type` discriminator.
    """

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    @model_serializer(mode="wrap")
    def _omit_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written = cast(dict[str, Any], handler(self))
        for name, field in type(self).model_fields.items():
            if name != "type" and not field.is_required() and getattr(self, name) == field.default:
                written.pop(field.alias or name, None)
                written.pop(name, None)
        return written

    def to_json(self) -> str:
        """The stored spelling."""
        return self.model_dump_json(by_alias=True)


def _read_instant(value: object) -> object:
    return parse_instant(value) if isinstance(value, str) else value


Timestamp = Annotated[
    Instant | None,
    BeforeValidator(_read_instant),
    PlainSerializer(lambda value: None if value is None else format_instant(value), when_used="always"),
]
"""An `Instant` in memory, RFC 3339 in JSON; None where the time is not known."""
