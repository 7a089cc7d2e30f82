"""How much of a branch a model is given, so that no more is read than that."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recall:
    """What an agent needs of the past. The default is all of it.

    `summarised`: only what follows the last message that the newest summary covers, and that summary (see
    `Message.covers`). `turns`: only the newest runs that it takes to have so many in which a person spoke and
    was answered. A store may always give more.
    """

    summarised: bool = False
    turns: int | None = None


EVERYTHING = Recall()
