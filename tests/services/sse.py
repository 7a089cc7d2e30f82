"""Reads event streams as strictly as the released clients do: lines end with LF and nothing else."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import orjson


@dataclass(frozen=True, slots=True)
class SseFrame:
    """One block of a stream: an event with its `id`, or a comment (then `data` is empty).

    `raw` are its bytes, the blank line included.
    """

    raw: bytes
    id: str | None
    data: dict[str, Any]
    comment: str | None = None

    @property
    def type(self) -> str:
        return str(self.data.get("type", ""))


def parse_frame(block: bytes) -> SseFrame:
    """Reads one block without its blank line; AssertionError if it is not as we promise."""
    assert b"\r" not in block, f"a carriage return in {block!r}"
    fields: dict[str, list[bytes]] = {}
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        fields.setdefault(name.decode(), []).append(value.removeprefix(b" "))
    if fields.keys() == {""}:
        return SseFrame(block + b"\n\n", None, {}, b"\n".join(fields[""]).decode())
    assert len(fields.get("data", [])) == 1, f"not exactly one data line in {block!r}"
    id = fields.get("id", [None])[0]
    data = orjson.loads(fields["data"][0])
    return SseFrame(block + b"\n\n", id.decode() if id is not None else None, data)


async def blocks(response: httpx.Response) -> AsyncIterator[SseFrame]:
    """Every block of the stream as it comes, comments too. AssertionError if the last one was cut."""
    rest = b""
    async for piece in response.aiter_raw():
        *whole, rest = (rest + piece).split(b"\n\n")
        for block in whole:
            yield parse_frame(block)
    assert not rest, f"the stream ended inside a frame: {rest!r}"


async def frames(response: httpx.Response) -> AsyncIterator[SseFrame]:
    """The events of the stream as they come."""
    async for block in blocks(response):
        if block.comment is None:
            yield block


async def all_frames(response: httpx.Response) -> list[SseFrame]:
    """The events of a stream that ends."""
    return [frame async for frame in frames(response)]
