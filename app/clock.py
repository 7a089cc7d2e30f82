"""Time and ids: one injectable clock, instants as integers, and their RFC 3339 spelling.

An `Instant` is nanoseconds since 1970-01-01T00:00:00Z. It fits a signed 64-bit column, so the years
1678 to 2261 can be written; the zero time that some systems store for "unknown" (year 1) reads as None.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import uuid4

Instant = int

_NANOS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_LIMIT = 2**63 - 1


class Clock(Protocol):
    """Tells the time as an `Instant`."""

    def now(self) -> Instant: ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> Instant:
        return time.time_ns()


def new_id(prefix: str) -> str:
    """A fresh id such as `msg_5f0c…`; 128 random bits behind the prefix."""
    return f"{prefix}_{uuid4().hex}"


def parse_instant(text: str) -> Instant | None:
    """Reads an RFC 3339 time with any offset. The zero time is None; ValueError on anything else.

    Digits behind the ninth of a fraction are cut. A leap second (RFC 3339, section 5.6) is the second after.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("not an RFC 3339 time")
    day, clock, fraction, offset = match.groups()
    leap = clock.endswith(":60")
    clock = clock[:-2] + "59" if leap else clock
    moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if offset in 'Zz' else offset}")
    if moment.year == 1:
        return None
    since = moment - _EPOCH
    nanos = (since.days * 86_400 + since.seconds + leap) * _NANOS + int((fraction or "").ljust(9, "0"))
    if abs(nanos) > _LIMIT:
        raise ValueError("time out of range (years 1678 to 2261)")
    return nanos


def format_instant(instant: Instant) -> str:
    """RFC 3339 in UTC with `Z`, as many fractional digits as the instant needs, at most nine."""
    seconds, nanos = divmod(instant, _NANOS)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
    fraction = f"{nanos:09d}".rstrip("0")
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


def format_millis(instant: Instant) -> str:
    """RFC 3339 in UTC with exactly three fractional digits, so that texts sort like times."""
    seconds, nanos = divmod(instant, _NANOS)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
    return f"{text}.{nanos // 1_000_000:03d}Z"
