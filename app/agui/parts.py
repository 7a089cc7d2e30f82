"""Parts of a client's content: older ones upgraded, unknown ones left out, known ones as blocks."""

import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ag_ui.core import ContentPart
from ag_ui.core import TextPart as WireText
from pydantic import TypeAdapter

from app.conversation.blocks import Audio, Document, Image, Media, Source, Text, Video
from app.errors import InvalidInput

KNOWN_PARTS = frozenset({"text", "image", "audio", "video", "document"})

_MEDIA: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video, "document": Document}
_SOURCE: TypeAdapter[Source] = TypeAdapter(Source)


@dataclass(slots=True)
class KeptParts:
    """The parts that we know, where each stood in the client's list, and how many were left out."""

    parts: list[object] = field(default_factory=list[object])
    places: list[int] = field(default_factory=list[int])
    dropped: int = 0


def keep_known(parts: Sequence[object], field: str) -> KeptParts:
    """Leaves out parts of a type we do not know and upgrades the retired `binary` part.

    A part that is no object, or names no type, stays for the validation to refuse.
    """
    kept = KeptParts()
    for place, given in enumerate(parts):
        part = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        kind = part.get("type")
        if isinstance(kind, str) and kind not in KNOWN_PARTS and kind != "binary":
            kept.dropped += 1
            continue
        kept.parts.append(_upgrade(part, f"{field}/{place}") if kind == "binary" else cast(object, given))
        kept.places.append(place)
    return kept


def _upgrade(part: dict[str, Any], field: str) -> dict[str, object]:
    """The media part that replaced it: of in-line data, an address and a provider's id the first given."""
    mime_type = part.get("mimeType") or part.get("mime_type")
    if not isinstance(mime_type, str):
        raise InvalidInput("A binary part needs its media type as text.", field=f"{field}/mimeType")
    for member, kind in (("data", "data"), ("url", "url"), ("id", "file")):
        value = part.get(member)
        if isinstance(value, str) and value:
            source = {"type": kind, "value": value, "mimeType": mime_type}
            break
    else:
        raise InvalidInput("A binary part needs data, url or id.", field=f"{field}/source")
    family = mime_type.partition("/")[0].lower()
    upgraded: dict[str, object] = {"type": family if family in ("image", "audio", "video") else "document"}
    upgraded["source"] = source
    filename = part.get("filename")
    return {**upgraded, "metadata": {"filename": filename}} if isinstance(filename, str) else upgraded


def block_of(part: ContentPart) -> Text | Media:
    """The block that stands for a valid part; members that the protocol does not know are not kept."""
    if isinstance(part, WireText):
        return Text(text=part.text, id=part.id, metadata=part.metadata)
    given = part.source.model_dump(by_alias=True, include=set(type(part.source).model_fields))
    source = _SOURCE.validate_python(given)
    return _MEDIA[part.type](source=source, id=part.id, metadata=part.metadata)


def check_media(block: Media, accepts: frozenset[str], field: str) -> None:
    """InvalidInput for media that the agent does not take, and for in-line bytes that are not base64:
    stored, either would make every later call of the model fail."""
    if block.type not in accepts:
        raise InvalidInput(f"This agent does not take parts of type {block.type}.", field=field)
    if block.source.type == "data":
        try:
            binascii.a2b_base64(block.source.value, strict_mode=True)
        except ValueError:
            raise InvalidInput("In-line data must be base64.", field=f"{field}/source/value") from None
