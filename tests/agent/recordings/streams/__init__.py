"""Streams as providers and proxies sent them, one file each, named for what is odd about it."""

from pathlib import Path
from typing import Literal

from tests.agent.replay import Recording


def stream(
    name: str, *, split: int | None = None, end: Literal["close", "reset", "hang"] = "close"
) -> Recording:
    """The bytes of that file, in writes of `split`, and how the connection ends behind them."""
    return Recording((Path(__file__).parent / f"{name}.sse").read_bytes(), split=split, end=end)
