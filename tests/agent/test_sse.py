"""Events out of bytes, however the network cuts them."""

from hypothesis import given
from hypothesis import strategies as st

from app.agent.models.sse import SseReader, written

EVENTS = [("error", "one\ntwo"), ("", "Zürich \u2028 \x85 👩‍👧"), ("ping", '{"a": 1}')]


@given(st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 200), max_size=20))
def test_the_events_are_the_same_wherever_the_bytes_are_cut(line_end: str, cuts: list[int]) -> None:
    whole = b": hello\n\n" + b"".join(written(*event) for event in EVENTS)
    spelled = whole.replace(b"\n", line_end.encode())
    reader = SseReader()
    read: list[tuple[str, str]] = []
    at = 0
    for cut in [*sorted(cuts), len(spelled)]:
        read += reader.feed(spelled[at:cut])
        at = max(at, cut)
    assert [*read, *reader.finish()] == EVENTS


def test_an_event_that_only_lacks_its_blank_line_counts() -> None:
    reader = SseReader()
    assert reader.feed(b"event: last\ndata: words") == []
    assert reader.finish() == [("last", "words")]
