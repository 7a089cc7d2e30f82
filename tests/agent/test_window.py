"""A window over the newest turns."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.condensing import Condenser, Means
from app.agent.limits import Limits
from app.agent.pairing import paired
from app.agent.strays import Strays
from app.agent.window import Window
from app.conversation.blocks import ToolCall
from app.conversation.messages import (
    Injected,
    Message,
    Role,
    assistant_message,
    tool_result_message,
    user_message,
)
from tests.agent.histories import HISTORIES, never_asked, shown_to_models
from tests.agent.running import context, texts


def turns(*numbers: int) -> list[Message]:
    said: list[Message] = []
    for number in numbers:
        said += [user_message(f"q{number}"), assistant_message(f"a{number}")]
    return said


def test_the_newest_turns_are_shown_and_the_history_stays() -> None:
    history = turns(1, 2, 3)
    before = list(history)
    assert texts(Window(turns=2).view(history)) == ["q2", "a2", "q3", "a3"]
    assert history == before


def test_a_history_that_is_not_longer_than_the_window_is_shown_whole() -> None:
    history = [assistant_message("Welcome."), *turns(1, 2)]
    assert Window(turns=2).view(history) == history
    assert Window(turns=1).view([]) == []


def test_injected_messages_begin_no_turn() -> None:
    history = [*turns(1), user_message("note", injected=Injected.META), *turns(2)]
    assert texts(Window(turns=1).view(history)) == ["q2", "a2"]
    assert texts(Window(turns=2).view(history)) == ["q1", "a1", "note", "q2", "a2"]


def test_what_a_user_wrote_in_a_row_is_shown_whole_while_it_waits_for_its_answer() -> None:
    history = [*turns(1), user_message("first"), user_message("second")]
    assert texts(Window(turns=1).view(history)) == ["first", "second"]


def test_a_result_that_came_turns_later_brings_its_call_along() -> None:
    called = assistant_message([ToolCall(id="c", name="look", arguments="{}")])
    late = tool_result_message("c", "look", "sunny")
    history = [*turns(0), user_message("look"), called, *turns(2), late, *turns(3)]
    view = Window(turns=2).view(history)
    assert view[0].join_text() == "look"
    assert not any(message.is_error for message in paired(view))


async def test_a_window_never_asks_for_a_summary() -> None:
    condenser = Condenser(Window(turns=1), Means(context(), never_asked, Limits(), Strays()))
    history = turns(*range(500))
    assert await condenser.summary(history) is None
    assert texts(condenser.view(history)) == ["q499", "a499"]


def test_without_anything_to_condense_by_all_is_shown() -> None:
    history = turns(1, 2, 3)
    assert Condenser(None, Means(context(), never_asked, Limits(), Strays())).view(history) == history


def test_a_window_of_no_turns_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 turn"):
        Window(turns=0)


@given(HISTORIES, st.integers(1, 4))
def test_the_view_is_an_end_of_the_history_in_which_no_call_is_torn_from_its_result(
    history: list[Message], count: int
) -> None:
    view = Window(turns=count).view(history)
    assert list(view) == history[len(history) - len(view) :]
    assert made_up(view) <= made_up(history)
    assert asked(view) >= min(count, asked(history))


def begun(rest: list[Message]) -> list[Message]:
    return [user_message("note", injected=Injected.META), user_message("go"), *rest]


@given(st.lists(HISTORIES.map(begun), max_size=6), st.integers(1, 3))
def test_as_many_runs_as_the_window_recalls_are_enough_for_its_view(
    runs: list[list[Message]], count: int
) -> None:
    """With runs that came to an answer and in which every call has its result, as the server's have."""
    window = Window(turns=count)
    needed = window.recall().turns
    assert needed is not None
    settled = [[*shown_to_models(run), assistant_message("done")] for run in runs]
    everything = [message for run in settled for message in run]
    recalled = [message for run in settled[-needed:] for message in run]
    assert window.view(recalled) == window.view(everything)


def asked(messages: Sequence[Message]) -> int:
    return len([m for m in messages if m.role is Role.USER and m.injected is Injected.NONE])


def made_up(messages: Sequence[Message]) -> set[str]:
    """Results that a prompt has to invent."""
    known = {message.id for message in messages}
    return {message.id for message in paired(messages) if message.id not in known}
