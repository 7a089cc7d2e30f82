"""Content of messages: our blocks as AG-UI shows them."""

from collections.abc import Iterable

from pydantic import JsonValue

from app.agui.encoding import encode
from app.conversation.blocks import (
    Audio,
    Block,
    Document,
    FileSource,
    Image,
    Media,
    Source,
    Text,
    ToolCall,
    Video,
)
from app.conversation.messages import Message
from app.conversation.views import for_reader, reader_text

_MEDIA = Image | Audio | Video | Document


def user_content(message: Message, *, legacy: bool = False) -> str | list[dict[str, object]]:
    """A string, or parts where the content came as parts or holds media."""
    shown = for_reader(message)
    if message.as_parts or _has_media(shown.content):
        return _parts(shown.content, legacy=legacy)
    return reader_text(message)


def result_content(message: Message, *, legacy: bool = False) -> str | list[dict[str, object]]:
    """A string; parts where a result holds media, which 0.x clients cannot read and get as text alone."""
    shown = for_reader(message)
    if not legacy and _has_media(shown.content):
        return _parts(shown.content, legacy=False)
    return reader_text(message)


def output_text(call: ToolCall) -> str:
    """What a tool gave that the provider ran itself, as text: JSON where it is not text already."""
    content: JsonValue = call.output.content if call.output is not None else None
    if content is None:
        return ""
    return content if isinstance(content, str) else encode(content).decode()


def _has_media(blocks: Iterable[Block]) -> bool:
    return any(isinstance(block, _MEDIA) for block in blocks)


def _parts(blocks: Iterable[Block], *, legacy: bool) -> list[dict[str, object]]:
    """0.x clients know no part whose bytes a provider holds (source `file`), so it is left out for them. Nor
    do they keep the id of a part or the metadata of a text."""
    parts: list[dict[str, object]] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append(_part(block, {"text": block.text}, legacy))
        elif isinstance(block, _MEDIA) and not (legacy and isinstance(block.source, FileSource)):
            parts.append(_part(block, {"source": _source(block.source)}, legacy))
    return parts


def _part(block: Text | Media, body: dict[str, object], legacy: bool) -> dict[str, object]:
    part: dict[str, object] = {"type": block.type, **body}
    if block.id is not None and not legacy:
        part["id"] = block.id
    if block.metadata is not None and not (legacy and isinstance(block, Text)):
        part["metadata"] = block.metadata
    return part


def _source(source: Source) -> dict[str, object]:
    written: dict[str, object] = {"type": source.type, "value": source.value}
    if source.mime_type is not None:
        written["mimeType"] = source.mime_type
    if isinstance(source, FileSource) and source.provider is not None:
        written["provider"] = source.provider
    return written
