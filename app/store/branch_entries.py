"""The entries of a branch, of each run those that stand there."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select

from app.store.bodies import CONTENT
from app.store.lineage import Stretch, batches
from app.store.tables import entries

_NAMED = (entries.c.namespace == bindparam("ns"), entries.c.run_id.in_(bindparam("runs", expanding=True)))
OF_RUNS: ColumnElement[bool] = and_(*_NAMED)
"""Finds the entries of some runs, by the parameters `ns` and `runs`."""

_last = bindparam("last", type_=entries.c.seq.type)
OF_STRETCH: ColumnElement[bool] = and_(
    entries.c.namespace == bindparam("ns"),
    entries.c.run_id == bindparam("run"),
    entries.c.seq > bindparam("behind", type_=entries.c.seq.type),
    or_(_last.is_(None), entries.c.seq <= _last),
)
"""Finds the entries of one run as far as it stands on a branch, by the parameters of `place_of`."""

_CONTENT = select(entries.c.run_id, *CONTENT).order_by(entries.c.run_id, entries.c.seq)
_WHOLE = _CONTENT.where(OF_RUNS)
_PART = _CONTENT.where(OF_STRETCH)
_COUNT = select(func.count()).select_from(entries)
_COUNT_WHOLE = _COUNT.where(OF_RUNS, entries.c.shown)
_COUNT_PART = _COUNT.where(OF_STRETCH, entries.c.shown)


def place_of(ns: str, stretch: Stretch) -> dict[str, Any]:
    """The parameters of `OF_STRETCH`."""
    return {"ns": ns, "run": stretch.run_id, "behind": stretch.behind, "last": stretch.last}


def rows_of(connection: Connection, ns: str, branch: Sequence[Stretch]) -> dict[str, list[Any]]:
    """The rows of a branch with the columns of `CONTENT`, by run, each in order; no more is read."""
    said: dict[str, list[Any]] = {}
    whole, parts = _sorted(branch)
    for lot in batches(whole):
        for row in connection.execute(_WHOLE, {"ns": ns, "runs": lot}):
            said.setdefault(row.run_id, []).append(row)
    for stretch in parts:
        said[stretch.run_id] = list(connection.execute(_PART, place_of(ns, stretch)))
    return said


def count_shown(connection: Connection, ns: str, branch: Sequence[Stretch]) -> int:
    """How many messages of a branch a reader sees."""
    whole, parts = _sorted(branch)
    lots = [connection.execute(_COUNT_WHOLE, {"ns": ns, "runs": lot}).scalar_one() for lot in batches(whole)]
    cut = [connection.execute(_COUNT_PART, place_of(ns, stretch)).scalar_one() for stretch in parts]
    return sum(lots) + sum(cut)


def _sorted(branch: Iterable[Stretch]) -> tuple[list[str], list[Stretch]]:
    """The runs that stand there whole, and the others."""
    whole: list[str] = []
    parts: list[Stretch] = []
    for stretch in branch:
        if stretch.whole:
            whole.append(stretch.run_id)
        else:
            parts.append(stretch)
    return whole, parts
