"""Compaction: when a summary is due, what it stands for, who writes it, and what the model is shown then."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.compaction import Compaction, occupancy
from app.agent.condensing import Plan
from app.agent.models.scripted import ScriptedModel
from app.agent.pairing import paired
from app.agent.summaries import summary_message
from app.agent.tokens import estimate_all
from app.conversation.blocks import (
    ToolCall,
)
from app.conversation.entries import MessageEntry
from app.conversation.messages import (
    Injected,
    Message,
    Role,
    Usage,
    assistant_message,
    tool_result_message,
    user_message,
)
from app.conversation.recall import Recall
from app.conversation.views import reader_view, stored_view
from tests.agent.compacting import LONG, TOLD, Asked, compacted, ids, planned, step, turn
from tests.agent.histories import HISTORIES
from tests.agent.running import texts

pytestmark = pytest.mark.requirement("AGT-09")


def test_a_summary_is_due_as_soon_as_the_prompt_has_as_many_tokens_as_the_threshold() -> None:
    history = [*turn("a"), *turn("b")]
    assert occupancy(history) == 400
    assert Compaction(401).plan(history) is None
    assert planned(Compaction(400), history).covers == "a!"


def test_what_the_provider_reported_counts_and_what_came_later_is_estimated() -> None:
    history = [*turn("a", usage=5000), *turn("b", usage=900), user_message(LONG)]
    assert occupancy(history) == 1000
    assert Compaction(1001).plan(history) is None
    assert Compaction(1000).plan(history) is not None


def test_an_answer_without_usage_is_estimated_behind_the_last_that_was_measured() -> None:
    history = [*turn("a", usage=900), user_message(LONG), assistant_message(LONG, usage=Usage())]
    assert occupancy(history) == 1100


async def test_what_was_measured_before_a_summary_says_nothing_of_the_prompt_behind_it() -> None:
    history = await compacted(Compaction(1000), [*turn("a", usage=5000), user_message(LONG)])
    assert occupancy(history) < 200
    assert Compaction(1000).plan(history) is None
    history.append(assistant_message(LONG, usage=Usage(total_tokens=700)))
    assert occupancy(history) == 700


def test_as_many_whole_turns_are_kept_as_fit() -> None:
    history = [*turn("a"), *turn("b"), *turn("c"), user_message(LONG, id="d?")]
    assert ids(planned(Compaction(700, keep_tokens=500), history).kept) == ["b?", "b!", "c?", "c!", "d?"]
    assert ids(planned(Compaction(700, keep_tokens=499), history).kept) == ["c?", "c!", "d?"]
    assert ids(planned(Compaction(700), history).kept) == ["d?"]


def test_the_present_turn_is_kept_whole_even_if_it_is_longer_than_what_is_kept() -> None:
    history = [*turn("a"), *turn("b"), user_message(LONG, id="c?"), *step("1"), *step("2")]
    plan = planned(Compaction(700, keep_tokens=50), history)
    assert plan.covers == "b!"
    assert plan.kept[0].id == "c?"


def test_a_turn_that_is_too_long_by_itself_is_cut_before_an_answer() -> None:
    """So a run with many tools can go on."""
    history = [*turn("a"), user_message(LONG, id="b?"), *step("1"), *step("2"), *step("3")]
    plan = planned(Compaction(400, keep_tokens=220), history)
    assert plan.covers == "1-result"
    assert ids(plan.kept) == ["2-call", "2-result", "3-call", "3-result"]


async def test_a_run_that_goes_on_for_long_is_compacted_again_and_again() -> None:
    compaction = Compaction(400, keep_tokens=150)
    history = [user_message(LONG, id="go")]
    for number in range(20):
        history += step(str(number))
        if compaction.plan(history) is not None:
            history = await compacted(compaction, history)
        assert estimate_all(compaction.view(history)) < 500
        assert not missing(compaction.view(history))
    assert len([message for message in history if message.covers]) > 4


def test_one_long_message_of_a_user_is_not_summed_up() -> None:
    assert Compaction(100).plan([user_message(LONG * 10)]) is None
    assert planned(Compaction(100), [*turn("a"), user_message(LONG * 10)]).covers == "a!"


def test_a_call_that_may_still_get_its_result_is_never_covered() -> None:
    called = assistant_message([ToolCall(id="1", name="ab"), ToolCall(id="2", name="ab")], id="called")
    waiting = [user_message(LONG), *step("0"), called, tool_result_message("2", "ab", LONG)]
    plan = planned(Compaction(200, keep_tokens=0), waiting)
    assert plan.kept[0] is called
    assert Compaction(100, keep_tokens=0).plan(waiting[3:]) is None
    interrupted = [*turn("a"), *waiting, user_message(LONG)]
    assert planned(Compaction(200, keep_tokens=0), interrupted).covers == "a!"


def test_a_call_that_nobody_will_answer_any_more_stops_no_summary() -> None:
    left = assistant_message([ToolCall(id="1", name="ab")])
    history = [user_message(LONG), left, *turn("a"), user_message(LONG)]
    assert planned(Compaction(300), history).covers == "a!"


def test_a_call_is_covered_with_its_late_result_or_not_at_all() -> None:
    called, late = step("1")
    history = [user_message(LONG), called, *turn("a"), late, *turn("b"), user_message(LONG)]
    plans = [Compaction(700, keep_tokens=keep).plan(history) for keep in range(0, 700, 50)]
    assert {plan.covers for plan in plans if plan is not None} == {late.id, "b!"}
    assert Compaction(300).plan(history[:5]) is None


def test_a_message_that_is_not_stored_is_never_the_last_one_covered() -> None:
    passing = user_message("only now", injected=Injected.EPHEMERAL)
    history = [*turn("a"), passing, user_message(LONG, id="b?")]
    plan = planned(Compaction(300), history)
    assert plan.covers == "a!"
    assert ids(plan.kept) == [passing.id, "b?"]
    assert Compaction(100).plan([passing, user_message(LONG)]) is None


def test_what_a_user_wrote_in_a_row_is_kept_together_until_it_is_answered() -> None:
    history = [*turn("a"), user_message(LONG, id="one"), user_message(LONG, id="two")]
    assert ids(planned(Compaction(300), history).kept) == ["one", "two"]


def test_injected_messages_begin_no_turn() -> None:
    note = user_message(LONG, injected=Injected.META)
    history = [*turn("a"), user_message(LONG, id="b?"), *step("1"), note]
    assert planned(Compaction(400), history).kept[0].id == "b?"


def test_a_prompt_that_is_long_for_other_reasons_keeps_less_of_its_messages() -> None:
    history = [*turn("a"), *turn("b"), *turn("c", usage=6000), user_message(LONG, id="d?")]
    assert ids(planned(Compaction(5000, keep_tokens=4000), history).kept)[0] == "c?"
    short = [user_message(LONG), assistant_message(LONG, usage=Usage(total_tokens=9000)), *step("1")]
    assert Compaction(5000).plan(short) is None


def test_what_is_shorter_than_any_summary_is_left_as_it_is() -> None:
    assert Compaction(100).plan([user_message("a"), assistant_message("b"), user_message(LONG)]) is None


async def test_the_model_is_shown_the_summary_in_place_of_what_it_covers() -> None:
    compaction = Compaction(500)
    history = [*turn("a"), *turn("b"), user_message(LONG, id="c?")]
    before = [message.to_json() for message in history]
    after = [*await compacted(compaction, history), assistant_message("c!", id="c!")]
    summary = after[5]
    assert [message.to_json() for message in after[:5]] == before
    assert TOLD in summary.join_text()
    assert summary.covers == "b!"
    assert summary.role is Role.USER
    assert list(compaction.view(after)) == [summary, *after[4:5], after[6]]
    assert summary not in reader_view(after)
    assert stored_view([MessageEntry(summary)]) == [MessageEntry(summary)]


async def test_a_later_summary_stands_for_the_earlier_one_too() -> None:
    compaction, ask = Compaction(500), Asked(["FIRST", "SECOND"])
    history = await compacted(compaction, [*turn("a"), *turn("b"), user_message(LONG, id="c?")], ask)
    history += [assistant_message(LONG, id="c!"), *turn("d"), *turn("e"), user_message(LONG, id="f?")]
    ask.prompts.clear()
    ask.answers.pop(0)
    history = await compacted(compaction, history, ask)
    assert ask.told[0].startswith("Summary so far: FIRST\nUser: x")
    assert "b!" not in ask.told[0]
    view = compaction.view(history)
    assert "SECOND" in view[0].join_text()
    assert ids(view) == [history[-1].id, "f?"]
    assert not any("FIRST" in text for text in texts(view))


async def test_the_view_of_what_is_recalled_is_the_view_of_the_whole_history() -> None:
    compaction = Compaction(500, keep_tokens=250)
    assert compaction.recall() == Recall(summarised=True)
    history = [*turn("a"), *turn("b"), user_message(LONG, id="c?")]
    history = [*await compacted(compaction, history), *turn("d")]
    covered = ids(history).index(cast(str, history[5].covers))
    recalled = [Message.model_validate_json(message.to_json()) for message in history[covered + 1 :]]
    assert compaction.view(recalled) == compaction.view(history)
    assert occupancy(recalled) == occupancy(history)


def test_nothing_is_lost_when_what_a_summary_covers_is_not_there() -> None:
    summary = summary_message("Gone.", covers="not-here", origin="test")
    history = [*turn("a"), summary, *turn("b")]
    assert Compaction(9000).view(history) == [summary, *turn_ids(history)]


def turn_ids(history: Sequence[Message]) -> list[Message]:
    return [message for message in history if message.covers is None]


def test_a_fork_from_before_the_summary_shows_every_message() -> None:
    history = [*turn("a"), *turn("b"), summary_message("S", covers="a!", origin="test")]
    assert Compaction(9000).view(history[:4]) == history[:4]
    assert ids(Compaction(9000).view(history)) == [history[4].id, "b?", "b!"]


def test_a_message_that_readers_see_covers_nothing_whatever_it_says_of_itself() -> None:
    history = [*turn("a"), user_message("mine", covers="a!"), *turn("b")]
    assert Compaction(9000).view(history) == history


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0},
        {"threshold": 100, "keep_tokens": 100},
        {"threshold": 100, "keep_tokens": -1},
        {"threshold": 100, "request_tokens": 0},
        {"threshold": 100, "result_characters": 0},
        {"threshold": 100, "model": ScriptedModel([]), "function": len},
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|room|not both"):
        Compaction(**options)


@given(st.lists(HISTORIES, min_size=1, max_size=4), st.integers(5, 200), st.integers(0, 100))
def test_histories_of_every_kind_only_get_shorter_views_and_lose_no_result(
    parts: list[list[Message]], threshold: int, share: int
) -> None:
    compaction = Compaction(threshold, keep_tokens=(threshold - 1) * share // 100)
    history: list[Message] = []
    for part in parts:
        history += part
        for _ in range(5):
            before = compaction.view(history)
            check_view(history, before)
            plan = compaction.plan(history)
            if plan is None:
                break
            check_plan(plan, before, history)
            summary = summary_message("s", covers=plan.covers, origin="test")
            history.append(summary)
            after = compaction.view(history)
            assert list(after) == [summary, *plan.kept]
            assert estimate_all(after) < estimate_all(before)
            assert missing(after) <= missing(before)


def check_plan(plan: Plan, view: Sequence[Message], history: Sequence[Message]) -> None:
    stored = [entry.id for entry in stored_view(map(MessageEntry, history))]
    assert plan.covers == plan.covered[-1].id
    assert plan.covers in stored
    assert [*plan.replaced, *plan.kept] == list(view)
    assert not any(message.covers for message in (*plan.covered, *plan.kept))


def check_view(history: Sequence[Message], view: Sequence[Message]) -> None:
    """An end of the history without its summaries, behind the newest of them, whatever else was read."""
    summaries = [message for message in history if message.covers]
    others = [message for message in history if not message.covers]
    told = list(view[1:] if summaries else view)
    assert list(view[:1]) == summaries[-1:] or not summaries
    assert told == others[len(others) - len(told) :]
    reloaded = [Message.model_validate_json(message.to_json()) for message in history]
    assert list(Compaction(1).view(reloaded)) == list(view)
    assert list(Compaction(1).view(view)) == list(view)


def missing(messages: Sequence[Message]) -> set[str]:
    """Results that a prompt has to make up."""
    known = {message.id for message in messages}
    return {message.id for message in paired(messages) if message.id not in known}
