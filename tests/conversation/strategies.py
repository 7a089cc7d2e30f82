"""Any message there can be, for property tests."""

from typing import Any

from hypothesis import strategies as st

from app.clock import Instant
from app.conversation.blocks import (
    KNOWN,
    Audio,
    Block,
    DataSource,
    Document,
    FileSource,
    Image,
    Reminder,
    ServerToolOutput,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    UrlSource,
    Video,
)
from app.conversation.entries import CustomEntry, Entry, MessageEntry, TransientEntry
from app.conversation.messages import Injected, Message, Role, StopReason, Usage

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
"""Every plane of Unicode, but no lone surrogates: those are no text."""
names = texts.filter(bool)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
instants: st.SearchStrategy[Instant] = st.integers(-(2**63) + 1, 2**63 - 1)
tokens = st.none() | st.integers(0, 2**53)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


sources = (
    st.builds(DataSource, value=texts, mime_type=texts)
    | st.builds(UrlSource, value=texts, mime_type=_maybe(texts))
    | st.builds(FileSource, value=texts, mime_type=_maybe(texts), provider=_maybe(texts))
)
plain_texts = st.builds(
    Text, text=texts, id=_maybe(names), metadata=json_values, provider=_maybe(json_objects)
)
thinkings = st.builds(
    Thinking,
    id=names,
    text=texts,
    signature=_maybe(texts),
    encrypted=_maybe(texts),
    created_at=_maybe(instants),
    provider=_maybe(json_objects),
)
media = st.one_of(
    *(
        st.builds(kind, source=sources, id=_maybe(names), metadata=json_values)
        for kind in (Image, Audio, Video, Document)
    )
)
outputs = st.builds(ServerToolOutput, content=json_values, raw=json_values, is_error=st.booleans())
tool_calls = st.builds(
    ToolCall,
    id=names,
    name=names,
    arguments=texts,
    server=st.booleans(),
    server_type=_maybe(texts),
    output=_maybe(outputs),
    encrypted=_maybe(texts),
    provider=_maybe(json_objects),
)
reminders = st.builds(Reminder, text=texts, origin=texts)


def _unknown(type: str, rest: dict[str, Any]) -> Unknown:
    return Unknown.model_validate({**rest, "type": type})


unknowns = st.builds(_unknown, texts.filter(lambda type: type not in KNOWN), json_objects)
said: st.SearchStrategy[Block] = plain_texts | thinkings | media | reminders | unknowns
blocks: st.SearchStrategy[Block] = said | tool_calls
usages = st.builds(Usage, **dict.fromkeys(Usage.model_fields, tokens))

_shared: dict[str, st.SearchStrategy[Any]] = {
    "id": names,
    "created_at": _maybe(instants),
    "sender_id": _maybe(names),
    "name": _maybe(texts),
    "injected": st.sampled_from(Injected),
    "origin": texts,
    "metadata": _maybe(json_objects),
}
user_messages = st.builds(
    Message,
    role=st.just(Role.USER),
    content=st.lists(said, max_size=4).map(tuple),
    as_parts=st.booleans(),
    **_shared,
)
assistant_messages = st.builds(
    Message,
    role=st.just(Role.ASSISTANT),
    content=st.lists(blocks, max_size=4).map(tuple),
    provider=_maybe(texts),
    model=_maybe(texts),
    response_id=_maybe(texts),
    usage=_maybe(usages),
    stop_reason=_maybe(st.sampled_from(StopReason)),
    **_shared,
)
tool_results = st.builds(
    Message,
    role=st.just(Role.TOOL_RESULT),
    content=st.lists(said, max_size=4).map(tuple),
    call_id=names,
    tool_name=names,
    is_error=st.booleans(),
    **_shared,
)
messages = user_messages | assistant_messages | tool_results
entries: st.SearchStrategy[Entry] = (
    st.builds(MessageEntry, messages)
    | st.builds(CustomEntry, name=texts, value=json_values, id=names)
    | st.builds(TransientEntry, name=texts, value=json_values, id=names)
)
