"""From our words to the provider library's, and nothing lost on the way."""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    Citation,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
    VideoUrl,
)

from app.agent.models.server_tools import server_parts
from app.conversation.blocks import (
    Audio,
    Block,
    DataSource,
    Document,
    FileSource,
    Image,
    Reminder,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    UrlSource,
    Video,
)
from app.conversation.messages import Message, Role

_MEDIA_URLS = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl, "document": DocumentUrl}
_SEPARATOR = "\n\n"
_CITATIONS = TypeAdapter(list[Citation])


def request_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """The history. What lies between two answers of the model is one request, in its order."""
    history: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = []
    for message in messages:
        if message.role is not Role.ASSISTANT:
            waiting.append(_request_part(message))
            continue
        if waiting:
            history.append(ModelRequest(parts=waiting))
            waiting = []
        history.append(_response(message))
    if waiting:
        history.append(ModelRequest(parts=waiting))
    return history


def _request_part(message: Message) -> ModelRequestPart:
    content = _user_content(message.content)
    if message.role is Role.TOOL_RESULT:
        return ToolReturnPart(
            tool_name=message.tool_name or "",
            content=content,
            tool_call_id=message.call_id or "",
            outcome="failed" if message.is_error else "success",
        )
    return UserPromptPart(content=content)


def _user_content(blocks: Sequence[Block]) -> Any:
    """One text where there is only text, for many servers take nothing else; a list of parts otherwise."""
    parts = list(_parts(blocks))
    if all(isinstance(part, str) for part in parts):
        return _SEPARATOR.join(cast(list[str], parts))
    return parts


def _parts(blocks: Sequence[Block]) -> Iterator[UserContent]:
    for block in blocks:
        if isinstance(block, Text | Reminder):
            yield block.text
        elif isinstance(block, Image | Audio | Video | Document):
            yield _media(block)
        elif isinstance(block, Unknown):
            yield json.dumps(block.data, ensure_ascii=False, sort_keys=True)


def _media(block: Image | Audio | Video | Document) -> UserContent:
    source = block.source
    if isinstance(source, DataSource):
        return BinaryContent(data=base64.b64decode(source.value), media_type=source.mime_type)
    if isinstance(source, UrlSource):
        return _MEDIA_URLS[block.type](url=source.value, media_type=source.mime_type)
    assert isinstance(source, FileSource)
    holder = cast(Any, source.provider or "openai")
    return UploadedFile(file_id=source.value, provider_name=holder, media_type=source.mime_type)


def _response(message: Message) -> ModelResponse:
    stamps = [stamp for block in message.content if (stamp := _note(block, "canonicalSystem"))]
    return ModelResponse(
        parts=[part for block in message.content for part in _response_parts(block, message)],
        model_name=message.model,
        provider_name=message.provider,
        canonical_system=cast(str, stamps[0]) if stamps else None,
        provider_response_id=message.response_id,
    )


def _response_parts(block: Block, message: Message) -> Iterator[ModelResponsePart]:
    known = {
        "id": _note(block, "id"),
        "provider_name": _note(block, "name") or message.provider,
        "provider_details": _note(block, "details"),
    }
    notes = cast(dict[str, Any], known)
    if isinstance(block, Text | Reminder):
        yield TextPart(content=block.text, citations=_citations(block), **notes)
    elif isinstance(block, Thinking):
        yield ThinkingPart(content=block.text, signature=block.signature or block.encrypted, **notes)
    elif isinstance(block, ToolCall) and block.server:
        yield from server_parts(block, notes)
    elif isinstance(block, ToolCall):
        arguments = block.arguments or "{}"
        yield ToolCallPart(tool_name=block.name, args=arguments, tool_call_id=block.id, **notes)


def _citations(block: Block) -> list[Citation] | None:
    """The sources that the provider named for this text; none of a shape that the library does not know."""
    told = _note(block, "citations")
    try:
        return _CITATIONS.validate_python(told) if told else None
    except ValidationError:
        return None


def _note(block: Block, name: str) -> JsonValue:
    """What the provider's adapter wrote on this block when it came."""
    provider: dict[str, JsonValue] | None = getattr(block, "provider", None)
    return provider.get(name) if provider else None
