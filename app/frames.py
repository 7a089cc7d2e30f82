"""One event on its way to clients, as ready bytes.

A frame is one JSON document without line breaks. Nearly all frames are the same for every client; the few
that differ between AG-UI 1.0 and the 0.x clients are `Variants`.
"""

from typing import NamedTuple


class Variants(NamedTuple):
    """What a 1.0 client gets and what a 0.x client gets; None: it gets nothing."""

    current: bytes
    legacy: bytes | None


Frame = bytes | Variants
