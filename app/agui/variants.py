"""One event for both generations of clients."""

from app.agui.brackets import Brackets, Members
from app.frames import Frame, Variants


def variants(kind: str, current: Members, legacy: Members, brackets: Brackets) -> Frame:
    """One frame for all clients where both get the same."""
    frame = brackets.event(kind, current)
    return frame if current == legacy else Variants(frame, brackets.event(kind, legacy))


def for_current(kind: str, members: Members, brackets: Brackets) -> Frame:
    """A frame of a kind that 0.x clients are not told of."""
    return Variants(brackets.event(kind, members), None)
