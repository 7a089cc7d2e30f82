"""Strict JSON: taken whole, or refused by name."""

import json
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.bodies import MAX_DEPTH, MOST_LOOKED_AT, NotJson, parse_json
from app.errors import InvalidInput

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_whatever_json_can_say_is_read_as_it_is(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.requirement("AGUI-16")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (rb'{"a": NaN}', "a"),
        (rb'{"a": [1, -Infinity]}', "a/1"),
        (rb'{"a": 1e999}', "a"),
        (rb'{"a": {"b": "x\u0000y"}}', "a/b"),
        (rb'{"a": ["\ud83d"]}', "a/0"),
        (rb'{"a": ["\ude00\ud83d"]}', "a/0"),
        (rb'{"bad\u0000key": 1}', "bad?key"),
        (rb'{"a": 9223372036854775808}', "a"),
        (rb'{"a": -123456789012345678901234567890}', "a"),
        (b"[" * 10_000 + b"]" * 10_000, "body"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "body"),
        (b"[" * 10_000, "body"),
    ],
)
def test_what_cannot_be_kept_unchanged_is_refused_by_its_field(body: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_json(body)
    assert refusal.value.field == field


@pytest.mark.parametrize("body", [b"nope", b'{"a":1', b"{'a':1}", b"\xff", b'{"a":1}}', b"", b'"\x01"'])
def test_what_is_not_json_is_400(body: bytes) -> None:
    with pytest.raises(NotJson) as refusal:
        parse_json(body)
    assert refusal.value.status == 400


def test_a_spelt_out_escape_and_long_digits_in_text_are_ordinary() -> None:
    assert parse_json(rb'["\\u0000", "12345678901234567890123"]') == [r"\u0000", "12345678901234567890123"]
    assert parse_json(rb'["\ud83d\ude00"]') == ["😀"]


def test_brackets_in_text_are_no_nesting() -> None:
    deep = b"[" * (MAX_DEPTH - 1) + b'"' + b"[{" * 5000 + b'\\""' + b"]" * (MAX_DEPTH - 1)
    parse_json(deep)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 4_000_000,
        b"[" + b"[]," * 1_000_000 + b"[]]",
        b"[" + b"1," * 2_000_000 + b'"\\u0000"]',
        b"[" + b"1," * 2_000_000 + b"99999999999999999999]",
        b"[" + b"1," * 2_000_000 + b"NaN]",
    ],
    ids=["open", "many", "nul", "number", "nan"],
)
def test_looking_for_a_fault_has_a_bound(body: bytes) -> None:
    """Counted in calls of Python functions, so that no clock is needed."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        with suppress(InvalidInput, NotJson):
            parse_json(body)
    finally:
        sys.setprofile(None)
    assert calls < 30 * MOST_LOOKED_AT
