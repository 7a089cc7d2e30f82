"""What a message holds: typed blocks, told apart in JSON by `type`."""

from typing import Annotated, Any, Literal, cast

from pydantic import (
    Discriminator,
    JsonValue,
    ModelWrapValidatorHandler,
    Tag,
    model_serializer,
    model_validator,
)

from app.conversation.words import Timestamp, Words


class Text(Words):
    """What a reader reads. `provider` holds what its maker needs to see again, untouched."""

    type: Literal["text"] = "text"
    text: str
    id: str | None = None
    metadata: JsonValue = None
    provider: dict[str, JsonValue] | None = None


class Thinking(Words):
    """A model's reasoning, with an id of its own.

    `signature` and `encrypted` are opaque to us and go back to the provider byte for byte. `created_at` is
    the time at which the reasoning ended.
    """

    type: Literal["thinking"] = "thinking"
    id: str
    text: str = ""
    signature: str | None = None
    encrypted: str | None = None
    created_at: Timestamp = None
    provider: dict[str, JsonValue] | None = None


class DataSource(Words):
    """Bytes in line: `value` is base64."""

    type: Literal["data"] = "data"
    value: str
    mime_type: str


class UrlSource(Words):
    """Bytes elsewhere. The server never fetches them itself."""

    type: Literal["url"] = "url"
    value: str
    mime_type: str | None = None


class FileSource(Words):
    """Bytes that a provider holds under an id."""

    type: Literal["file"] = "file"
    value: str
    mime_type: str | None = None
    provider: str | None = None


Source = Annotated[DataSource | UrlSource | FileSource, Discriminator("type")]


class _Media(Words):
    source: Source
    id: str | None = None
    metadata: JsonValue = None


class Image(_Media):
    type: Literal["image"] = "image"


class Audio(_Media):
    type: Literal["audio"] = "audio"


class Video(_Media):
    type: Literal["video"] = "video"


class Document(_Media):
    type: Literal["document"] = "document"


class ServerToolOutput(Words):
    """What a tool gave that the provider ran itself: `content` for readers, `raw` for the provider."""

    content: JsonValue = None
    raw: JsonValue = None
    is_error: bool = False


class ToolCall(Words):
    """A call as the model made it. `arguments` is its JSON text, unparsed.

    `server` marks a call that the provider ran itself, of kind `server_type`, with its `output`.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: str = ""
    server: bool = False
    server_type: str | None = None
    output: ServerToolOutput | None = None
    encrypted: str | None = None
    provider: dict[str, JsonValue] | None = None


class Reminder(Words):
    """Context that rides in a message: the model reads it, a reader never does."""

    type: Literal["reminder"] = "reminder"
    text: str
    origin: str = ""


class Unknown(Words):
    """A block of a type that this version does not know, kept as it came in `data`."""

    type: str
    data: dict[str, Any]

    @model_validator(mode="wrap")
    @classmethod
    def _keep_whole(cls, value: Any, handler: ModelWrapValidatorHandler["Unknown"]) -> "Unknown":
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            return handler(value)
        data = cast(dict[str, Any], value)
        kind = data.get("type")
        return handler({"type": kind if isinstance(kind, str) else "", "data": data})

    @model_serializer(mode="plain")
    def _as_it_came(self) -> dict[str, Any]:
        return self.data


KNOWN = frozenset({"text", "thinking", "image", "audio", "video", "document", "tool_call", "reminder"})


def _tag(value: Any) -> str:
    if isinstance(value, dict):
        kind = cast(dict[str, Any], value).get("type")
    else:
        kind = getattr(value, "type", None) if isinstance(value, Words) else None
    return kind if isinstance(kind, str) and kind in KNOWN else "unknown"


Block = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[Thinking, Tag("thinking")]
    | Annotated[Image, Tag("image")]
    | Annotated[Audio, Tag("audio")]
    | Annotated[Video, Tag("video")]
    | Annotated[Document, Tag("document")]
    | Annotated[ToolCall, Tag("tool_call")]
    | Annotated[Reminder, Tag("reminder")]
    | Annotated[Unknown, Tag("unknown")],
    Discriminator(_tag),
]
Media = Image | Audio | Video | Document
