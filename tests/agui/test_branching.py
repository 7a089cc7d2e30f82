"""Which branch a client's list leads to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agui.branching import Branch, Place, branch_off, hear
from app.agui.input import read_run_input
from app.store.adapter import KEEP, Keep
from tests.agui.records import earlier, entry
from tests.agui.requests import assistant, body, head, opening, tool, turn, user

HEAD = ("u1", "a1", "t1", "a2")
STEERED = ("u1", "m1", "a1", "u2", "a2")
MADE = {"u": user, "a": assistant, "t": tool}
NONE: list[str] = []


def listed(*ids: str) -> list[dict[str, Any]]:
    return [MADE[id[0]](id) for id in ids]


def decided(
    ids: tuple[str, ...],
    stored: tuple[str, ...],
    *,
    wish: str | None = None,
    at_tip: bool = True,
    after: str | None = None,
) -> tuple[str | Keep | None, str | None, list[str]] | None:
    """Previous run, cut and copied entries for a list of these messages against the run `earlier`, which
    follows `before` up to its entry `after`."""
    heard = hear(read_run_input(body(*listed(*ids))).messages, dict.fromkeys(stored, "earlier"))
    run = earlier(previous_run_id="before", branch_after_entry=after)
    place = Place(run, [entry(id) for id in stored], at_tip) if heard.last_known else None
    branch = branch_off(heard, place, wish, awaits=False)
    return branch and (branch.previous_run_id, branch.after_entry, [one.id for one in branch.copied])


@pytest.mark.requirement("AGUI-07")
@pytest.mark.parametrize(
    ("ids", "stored", "at_tip", "decision"),
    [
        # nothing known: only the new turn
        (("u9",), (), True, (KEEP, None, NONE)),
        # the last known message is of the head's run
        (("u1", "a1", "t1", "a2", "u9"), HEAD, True, (KEEP, None, NONE)),
        (("u1", "u9"), HEAD, True, (KEEP, None, NONE)),
        (("a1", "u9"), HEAD, True, (KEEP, None, NONE)),
        (("u1", "a1", "u2", "u9"), STEERED, True, (KEEP, None, NONE)),
        # it lacks a user message that stands behind it there
        (("u1", "a1", "u9"), STEERED, True, ("earlier", "a1", NONE)),
        (("u1", "u9"), STEERED, True, ("earlier", "a1", NONE)),
        (("u2", "u1", "u9"), STEERED, True, (KEEP, None, NONE)),
        (("u1", "u9"), ("u1", "u2", "a1"), True, ("earlier", "u1", NONE)),
        # a reader cannot lack what no reader sees
        (("u1", "u9"), ("u1", "m1", "a1", "m2"), True, (KEEP, None, NONE)),
        # of an earlier run, or one on another branch
        (("u1", "a1", "t1", "a2", "u9"), HEAD, False, ("earlier", None, NONE)),
        (("u1", "a1", "u9"), STEERED, False, ("earlier", "a1", NONE)),
        # a known user message at the end asks for a new answer
        (("u1",), ("u1", "a1"), True, ("before", "cut", ["u1"])),
        (("u1",), ("u1", "a1"), False, ("before", "cut", ["u1"])),
        (("u1",), ("x1", "u1", "m2", "x2", "a1", "m3"), True, ("before", "cut", ["x1", "u1", "m2", "x2"])),
        (("u1", "a1", "u2"), STEERED, True, ("earlier", "a1", ["u2"])),
        (("u1",), STEERED, True, ("before", "cut", ["u1", "m1"])),
        (("u1",), ("u1", "u2", "a1"), True, ("before", "cut", ["u1"])),
        (("u1", "u2"), ("u1", "u2", "a1"), True, ("before", "cut", ["u1", "u2"])),
        (("u1",), ("t1", "u1", "a1"), True, ("earlier", "t1", ["u1"])),
        # nobody answered it yet
        (("u1",), ("u1",), True, (KEEP, None, NONE)),
        (("u1", "u2"), ("u1", "a1", "u2", "m1", "x1"), True, (KEEP, None, NONE)),
        (("u1",), ("u1",), False, ("before", "cut", ["u1"])),
        (("u1",), ("u1", "u2"), True, ("before", "cut", ["u1"])),
        # nothing new, and no question
        (("u1", "a1"), HEAD, True, None),
        (("u1", "a1", "t1"), HEAD, True, None),
        (("u1", "a9"), HEAD, True, None),
        ((), HEAD, True, None),
    ],
)  # fmt: skip
def test_the_last_known_message_decides(
    ids: tuple[str, ...], stored: tuple[str, ...], at_tip: bool, decision: Any
) -> None:
    assert decided(ids, stored, at_tip=at_tip, after="cut") == decision


@pytest.mark.requirement("AGUI-07", "AGUI-10")
@pytest.mark.parametrize(
    ("wish", "ids", "decision"),
    [
        ("head", ("u1", "u9"), (KEEP, None, NONE)),
        ("start", ("u1", "u9"), (None, None, NONE)),
        ("other", ("u1", "u9"), ("other", None, NONE)),
        ("head", ("u1",), None),
        ("start", ("u1",), (None, None, ["u1", "m1"])),
        ("start", ("u1", "a1"), None),
    ],
)
def test_a_wish_comes_before_the_list(wish: str, ids: tuple[str, ...], decision: Any) -> None:
    assert decided(ids, STEERED, wish=wish, at_tip=False) == decision


def test_a_list_cannot_pass_an_answer_off_as_a_question() -> None:
    heard = hear(read_run_input(body(user("a1"))).messages, {"a1": "earlier"})
    place = Place(earlier(), [entry("u1"), entry("a1")], at_tip=True)
    assert branch_off(heard, place, None, awaits=False) is None


@pytest.mark.requirement("AGUI-11")
def test_a_question_that_is_asked_again_brings_the_context_it_had() -> None:
    context = [{"description": "page", "value": "/home"}]
    first = turn(body(user("u1"), context=context))
    assert isinstance(first.meta, dict)
    thread = head("u1", "a1", meta=first.meta)
    again = turn(body(user("u1"), context=context), thread)
    assert ([one.id for one in again.entries], again.meta) == (["u1"], first.meta)
    assert again.branch == Branch(None, None, tuple(again.entries), thread.head)


@pytest.mark.requirement("AGUI-06")
@given(st.data())
def test_however_much_of_the_history_comes_along_the_turn_is_the_same(data: st.DataObject) -> None:
    """A filter may drop anything but what a person said in the head's run behind something it keeps of it."""
    kinds = data.draw(st.lists(st.sampled_from("uatmx"), max_size=8))
    stored = ["u0", *(f"{kind}{number}" for number, kind in enumerate(kinds, 1))]
    history = listed(*(id for id in stored if id[0] in MADE))
    old = listed("a98", "t98")
    first_kept = data.draw(st.integers(0, len(history)))
    kept = [
        message for message in history[first_kept:] if message["role"] == "user" or data.draw(st.booleans())
    ]
    new = listed("u99")
    thread = head(*stored)
    full, delta, filtered = (turn(body(*messages, *new), thread) for messages in ([*old, *history], [], kept))
    for taken in (delta, filtered):
        assert (taken.branch, opening(taken), taken.digest) == (full.branch, opening(full), full.digest)
    assert full.branch == Branch()
