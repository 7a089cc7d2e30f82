"""Who reads what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation import views
from app.conversation.blocks import Block, Image, Reminder, Text, UrlSource
from app.conversation.entries import CustomEntry, Entry, MessageEntry, TransientEntry
from app.conversation.messages import Injected, Message, assistant_message, user_message
from tests.conversation import strategies

some_entries = st.lists(strategies.entries, max_size=6)
some_messages = st.lists(strategies.messages, max_size=6)


def _messages(entries: list[Entry]) -> list[Message]:
    return [entry.message for entry in entries if isinstance(entry, MessageEntry)]


def _without_reminders(message: Message) -> list[Block]:
    return [block for block in message.content if block.type != "reminder"]


@pytest.mark.requirement("MSG-06")
@given(some_entries)
def test_a_model_reads_every_message_whole_and_no_record(entries: list[Entry]):
    assert views.model_view(entries) == _messages(entries)


@pytest.mark.requirement("MSG-06")
@given(some_messages)
def test_a_reader_sees_what_nobody_injected_and_no_reminder(messages: list[Message]):
    seen = views.reader_view(messages)
    said = [message for message in messages if message.injected.value == "none"]
    assert [message.id for message in seen] == [message.id for message in said]
    for shown, message in zip(seen, said, strict=True):
        assert list(shown.content) == _without_reminders(message)
        assert shown == message.model_copy(update={"content": shown.content})


@pytest.mark.requirement("MSG-06")
@given(some_entries)
def test_a_store_keeps_all_but_the_ephemeral_and_the_transient(entries: list[Entry]):
    def lasts(entry: Entry) -> bool:
        if isinstance(entry, MessageEntry):
            return entry.message.injected.value in ("none", "meta")
        return isinstance(entry, CustomEntry)

    kept = views.stored_view(entries)
    assert kept == [entry for entry in entries if lasts(entry)]
    assert not any(isinstance(entry, TransientEntry) for entry in kept)


@pytest.mark.requirement("MSG-06")
@given(strategies.messages, st.sampled_from(Injected))
def test_the_three_readers_agree_on_every_flag(message: Message, injected: Injected):
    flagged = message.model_copy(update={"injected": injected})
    entry = MessageEntry(flagged)
    assert views.model_view([entry]) == [flagged]
    assert views.reader_sees(flagged) == bool(views.reader_view([flagged])) == (injected.value == "none")
    assert bool(views.stored_view([entry])) == (injected.value != "ephemeral")


@pytest.mark.requirement("MSG-06")
@given(strategies.messages)
def test_taking_reminders_away_twice_takes_no_more(message: Message):
    once = views.for_reader(message)
    assert views.for_reader(once) == once
    assert list(once.content) == _without_reminders(message)


@pytest.mark.requirement("MSG-06", "MSG-08")
@given(strategies.messages)
def test_a_readers_text_is_the_text_blocks_of_what_nobody_injected(message: Message):
    shown = message.injected.value == "none"
    expected = "".join(block.text for block in message.content if isinstance(block, Text)) if shown else ""
    assert views.reader_text(message) == expected


@pytest.mark.requirement("MSG-08")
def test_the_title_is_the_first_line_a_person_wrote():
    messages = [
        user_message("injected", injected=Injected.META),
        assistant_message("a model"),
        user_message([Reminder(text="secret"), Image(source=UrlSource(value="x"))]),
        user_message([Reminder(text="secret"), Text(text="\n  Plan a trip \nto Rome")]),
        user_message("later"),
    ]
    assert views.title(messages) == "Plan a trip"


@pytest.mark.requirement("MSG-08")
@given(some_messages)
def test_a_title_is_short_and_only_of_what_a_reader_sees(messages: list[Message]):
    title = views.title(messages)
    read = [views.reader_text(message) for message in messages if message.role.value == "user"]
    if title is None:
        assert not any(text.strip() for text in read)
    else:
        assert 0 < len(title) <= views.TITLE_LENGTH + 1
        assert any(title.removesuffix("…") in text for text in read)


@pytest.mark.parametrize(("length", "expected"), [(5, "abcde"), (4, "abcd…"), (1, "a…")])
def test_a_snippet_is_cut_with_an_ellipsis(length: int, expected: str):
    assert views.snippet("  abcde ", length) == expected
