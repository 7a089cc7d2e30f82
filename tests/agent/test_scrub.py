"""Text at the door."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.agent import Agent
from app.agent.models.base import CallPiece, ThinkingPiece
from app.agent.models.scripted import ScriptedModel
from app.agent.scrub import DeltaScrubber, scrub, scrub_json
from app.conversation.blocks import Text, Thinking
from tests.agent.running import answer, kept

ANY = st.text(
    st.one_of(
        st.characters(codec=None),
        st.sampled_from("\x00\ud83d\ude00\ud800\udfff\U0001f600a"),
    ),
    max_size=12,
)


@given(ANY)
def test_scrubbed_text_can_be_written_anywhere_and_good_text_is_left_alone(text: str) -> None:
    clean = scrub(text)
    assert "\x00" not in clean
    assert clean.encode().decode() == clean
    assert scrub(clean) == clean
    try:
        fit = text.encode() and "\x00" not in text
    except UnicodeEncodeError:
        fit = False
    if fit:
        assert clean is text


@given(st.lists(ANY, max_size=8))
def test_pieces_scrub_to_what_the_whole_text_scrubs_to(pieces: list[str]) -> None:
    door = DeltaScrubber()
    assert "".join([*(door.take(piece) for piece in pieces), door.rest()]) == scrub("".join(pieces))


def test_a_literal_escape_is_no_nul() -> None:
    assert scrub("a\\u0000b") == "a\\u0000b"
    assert scrub_json({"a\x00": ["\ud800", 1, None]}) == {"a\ufffd": ["\ufffd", 1, None]}


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["ok \ud83d", "\ude00 and \udcaf end"], "ok \U0001f600 and \ufffd end"),
        (["last \ud83d"], "last \ufffd"),
        (["\ud83d"], "\ufffd"),
        ([" ", "\ud83d", "\ude00"], " \U0001f600"),
        (["a\x00b"], "a\ufffdb"),
    ],
)
async def test_halves_of_a_character_in_two_deltas_are_joined(pieces: list[str], text: str) -> None:
    def note(word: str) -> str:
        return word

    thoughts = [ThinkingPiece(piece) for piece in pieces]
    call = [CallPiece("0", '{"word":"', name="note"), *(CallPiece("0", piece) for piece in pieces)]
    model = ScriptedModel([[*thoughts, *pieces, *call, CallPiece("0", '"}')], "end"])
    told = await answer(Agent("bot", model=model, tools=[note]), "go")
    message, result, _ = kept(told)
    assert [block.text for block in message.content if isinstance(block, Text | Thinking)] == [text, text]
    assert result.join_text() == text


async def test_a_nul_escaped_in_arguments_reaches_no_tool() -> None:
    seen: list[str] = []

    def note(word: str) -> str:
        seen.append(word)
        return word

    arguments = '{"word":"Ba\\u0000sel"}'
    model = ScriptedModel([[CallPiece("0", arguments, name="note")], "end"])
    told = await answer(Agent("bot", model=model, tools=[note]), "go")
    assert seen == ["Ba\ufffdsel"]
    assert kept(told)[0].tool_calls()[0].arguments == arguments
