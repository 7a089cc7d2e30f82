"""The event log: one list of frames, any number of followers."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.errors import InvalidInput
from app.frames import Variants
from app.runs.log import WRITE_LIMIT, Position
from app.runs.log_memory import LogShelf, MemoryLog


async def everything(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


def frame(number: int, payload: bytes, seq: int = 7, epoch: int = 1) -> bytes:
    return b"id: %d.%d.%d\ndata: %b\n\n" % (seq, epoch, number, payload)


async def test_a_follower_gets_every_frame_with_its_position() -> None:
    log = MemoryLog(7, 1)
    log.append([b"{}", b'{"a":1}'])
    log.end()
    assert await everything(log.follow()) == frame(1, b"{}") + frame(2, b'{"a":1}')


@pytest.mark.requirement("LIVE-03")
async def test_followers_at_any_place_and_pace_see_the_same_bytes() -> None:
    log = MemoryLog(7, 1)
    whole = b"".join(frame(number, b'{"n":%d}' % number) for number in range(1, 501))
    starts = [0, 1, 7, 100, 499]
    followers = [asyncio.create_task(everything(log.follow(start))) for start in starts]
    for number in range(1, 501):
        log.append([b'{"n":%d}' % number])
        if number % 7 == 0:
            await asyncio.sleep(0)
    log.end()
    late = await everything(log.follow())
    assert late == whole
    for start, follower in zip(starts, followers, strict=True):
        seen = await follower
        assert whole.endswith(seen)
        assert seen.startswith(frame(start + 1, b'{"n":%d}' % (start + 1)))


@pytest.mark.requirement("LIVE-03")
async def test_one_write_holds_many_frames_and_never_more_than_the_limit() -> None:
    log = MemoryLog(1, 1)
    log.append([b'"%b"' % (b"x" * 1000)] * 500 + [b'"%b"' % (b"y" * 200_000)] + [b"{}"])
    log.end()
    pieces = [piece async for piece in log.follow()]
    assert max(map(len, pieces)) <= WRITE_LIMIT
    assert len(pieces) < 20
    assert b"".join(pieces).count(b"data: ") == 502


async def test_older_clients_get_their_own_spelling_of_the_frames_that_differ() -> None:
    log = MemoryLog(7, 1)
    log.append([b"{}", Variants(b'"new"', b'"old"'), b"[]", Variants(b'"only new"', None), b"1"])
    log.end()
    current = await everything(log.follow())
    legacy = await everything(log.follow(legacy=True))
    assert current == b"".join(
        frame(n, p) for n, p in enumerate([b"{}", b'"new"', b"[]", b'"only new"', b"1"], 1)
    )
    assert legacy == frame(1, b"{}") + frame(2, b'"old"') + frame(3, b"[]") + frame(5, b"1")
    assert await everything(log.follow(3, legacy=True)) == frame(5, b"1")


async def test_a_silent_log_ticks_and_the_end_ends_its_followers() -> None:
    log = MemoryLog(1, 1)
    follower = log.follow()
    first = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    log.wake()
    assert await first == b""
    last = asyncio.ensure_future(everything(follower))
    await asyncio.sleep(0)
    log.end()
    assert await last == b""


class Hand:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_an_ended_log_is_kept_for_the_retention_time() -> None:
    now = Hand()
    shelf = LogShelf(retention=10, max_bytes=10**9, now=now)
    shelf.open("n", "r", 1, 1)
    now.time = 1000
    shelf.tick()
    assert shelf.get("n", "r") is not None
    shelf.retire("n", "r")
    now.time = 1009
    shelf.tick()
    assert shelf.get("n", "r") is not None
    now.time = 1010
    shelf.tick()
    assert shelf.get("n", "r") is None


def test_ended_logs_hold_no_more_than_the_limit_and_the_oldest_goes_first() -> None:
    shelf = LogShelf(retention=1000, max_bytes=25_000, now=Hand())
    for name in ("a", "b", "c"):
        shelf.open("n", name, 1, 1).append([b"x" * 10_000])
        shelf.retire("n", name)
    assert [shelf.get("n", name) is not None for name in ("a", "b", "c")] == [False, True, True]
    shelf.open("n", "live", 1, 1).append([b"x" * 50_000])
    shelf.tick()
    assert shelf.get("n", "live") is not None


def test_a_log_of_another_namespace_is_not_there() -> None:
    shelf = LogShelf(retention=10, max_bytes=10, now=Hand())
    shelf.open("mine", "r", 1, 1)
    assert shelf.get("yours", "r") is None


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.x", "1.2.3.4", "-1.2.3", "1.2.٣", "1.2." + "9" * 30])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Position.parse(text)


def test_a_position_is_read_from_an_event_id() -> None:
    assert Position.parse("12.1.340") == Position(12, 1, 340)
