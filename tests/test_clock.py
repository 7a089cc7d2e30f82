"""Instants and their spelling."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import Instant, SystemClock, format_instant, format_millis, new_id, parse_instant
from app.conversation.messages import Message
from tests.conversation.strategies import instants

SECOND = 1_000_000_000
MOMENT = datetime(2024, 2, 29, 23, 59, 58, tzinfo=UTC)
AT = int(MOMENT.timestamp()) * SECOND
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59)


def _with_offset(instant: Instant, minutes: int) -> str:
    sign, size = ("-" if minutes < 0 else "+"), abs(minutes)
    local = MOMENT + timedelta(minutes=minutes)
    return f"{local:%Y-%m-%dT%H:%M:%S}.{instant % SECOND:09d}{sign}{size // 60:02d}:{size % 60:02d}"


@pytest.mark.requirement("MSG-13")
@given(instants)
def test_any_instant_comes_back_from_its_spelling(instant: Instant):
    text = format_instant(instant)
    assert text.endswith("Z")
    assert parse_instant(text) == instant
    assert len(text) == len("2024-02-29T23:59:58Z") or not text.removesuffix("Z").endswith(("0", "."))


@pytest.mark.requirement("MSG-13")
@given(st.integers(0, SECOND - 1), offsets)
def test_an_offset_names_the_same_instant_and_comes_out_in_utc(nanos: int, minutes: int):
    assert parse_instant(_with_offset(AT + nanos, minutes)) == AT + nanos


@pytest.mark.requirement("MSG-13")
@pytest.mark.parametrize(
    ("came", "written"),
    [
        ("2024-02-29T23:59:58.123456789Z", "2024-02-29T23:59:58.123456789Z"),
        ("2024-02-29T23:59:58.100000000Z", "2024-02-29T23:59:58.1Z"),
        ("2024-02-29T23:59:58.000Z", "2024-02-29T23:59:58Z"),
        ("2024-03-01T05:29:58.5+05:30", "2024-02-29T23:59:58.5Z"),
        ("2024-02-29t23:59:58z", "2024-02-29T23:59:58Z"),
        ("2024-02-29T23:59:58.1234567891Z", "2024-02-29T23:59:58.123456789Z"),
        ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
    ],
)
def test_a_message_writes_the_instant_it_was_given(came: str, written: str):
    message = Message.model_validate({"id": "m", "role": "user", "content": [], "createdAt": came})
    assert json.loads(message.to_json())["createdAt"] == written


@pytest.mark.requirement("MSG-13")
@given(instants, instants)
def test_thread_and_run_times_sort_as_text_like_the_times_they_tell(one: Instant, other: Instant):
    first, second = format_millis(one), format_millis(other)
    assert (first < second) == (one // 1_000_000 < other // 1_000_000)
    assert len(first) == len("2024-02-29T23:59:58.000Z")


@pytest.mark.requirement("MSG-13")
@given(instants)
def test_three_digits_cut_an_instant_to_its_millisecond(instant: Instant):
    cut = instant // 1_000_000 * 1_000_000
    if abs(cut) < 2**63:
        assert parse_instant(format_millis(instant)) == cut


@pytest.mark.requirement("HIS-16")
@pytest.mark.parametrize("zero", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000+00:00"])
def test_the_zero_time_reads_as_unknown(zero: str):
    assert parse_instant(zero) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2024-02-30T00:00:00Z",
        "2024-02-29T23:59:58",
        "2024-02-29",
        "2024-02-29T23:59:58.Z",
        "1600-01-01T00:00:00Z",
        "2300-01-01T00:00:00Z",
        "２０２４-02-29T23:59:58Z",
        "2024-02-29T24:00:01Z",
        "2024-02-29T23:59:58+24:00",
        "2024-02-29T23:59:58Z\n",
        "0001-01-01T00:00:00+99:00",
    ],
)
def test_what_is_no_time_of_ours_is_a_value_error(text: str):
    with pytest.raises(ValueError, match=r"\w"):
        parse_instant(text)


def test_the_system_clock_tells_the_time():
    before = datetime.now(UTC) - timedelta(seconds=5)
    told = datetime.fromisoformat(format_millis(SystemClock().now()))
    assert before < told < before + timedelta(seconds=60)


def test_ids_differ_and_tell_what_they_name():
    made = {new_id("run") for _ in range(100)}
    assert len(made) == 100
    assert all(id.startswith("run_") for id in made)
