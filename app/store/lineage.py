"""Branches: the chain of previous runs, from a run back to the start of its conversation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Integer, bindparam, literal, select
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import CTE, Select

from app.errors import NotFound
from app.store.records import IS_OF_THREAD, THIS_RUN, THIS_THREAD
from app.store.tables import KEY, SEQ, runs, threads

BATCH = 500
_STEP = 50
_WHOLE = 2**31 - 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run as far as it stands on a branch: its entries with numbers above `behind`, up to `last`."""

    run_id: str
    last: int | None = None
    behind: int = 0

    @property
    def whole(self) -> bool:
        """Whether all of the run stands there, entries that are still to come included."""
        return self.last is None and self.behind == 0

    def holds(self, seq: int) -> bool:
        return self.behind < seq and (self.last is None or seq <= self.last)


def _chain() -> Select[Any, Any]:
    """A run and those before it, each with the entry that it is cut behind, newest first, at most `depth`.

    Each step asks for one previous run by its key, in subqueries of its own, so neither database can
    choose to join the whole table of runs instead, which it would for a chain of guessed length.
    """
    first = select(
        bindparam("start", type_=KEY).label("id"),
        bindparam("cut", type_=SEQ).label("last"),
        literal(1, Integer, literal_execute=True).label("depth"),
    )
    chain: CTE = first.cte("chain", recursive=True)

    def of_run(column: ColumnElement[Any]) -> ColumnElement[Any]:
        this = (runs.c.namespace == bindparam("ns"), runs.c.id == chain.c.id)
        return select(column).where(*this).scalar_subquery()

    step = select(of_run(runs.c.previous_run_id), of_run(runs.c.branch_after_seq), chain.c.depth + 1).where(
        chain.c.id.is_not(None), chain.c.depth < bindparam("depth")
    )
    chain = chain.union_all(step)
    return select(chain.c.id, chain.c.last).where(chain.c.id.is_not(None)).order_by(chain.c.depth)


_CHAIN = _chain()
_HEAD = select(threads.c.head_run_id).where(THIS_THREAD)
_OF_THREAD = select(runs.c.id).where(THIS_RUN, IS_OF_THREAD)
_BEFORE = select(runs.c.previous_run_id, runs.c.branch_after_seq).where(THIS_RUN)
_NUMBER = select(runs.c.seq).where(THIS_RUN)


def walk(connection: Connection, ns: str, start: Stretch | None, depth: int = _WHOLE) -> list[Stretch]:
    """A branch from its end back, newest run first, at most `depth` of them; nothing without a start."""
    if start is None:
        return []
    place = {"ns": ns, "start": start.run_id, "cut": start.last, "depth": depth}
    return [Stretch(row.id, row.last) for row in connection.execute(_CHAIN, place)]


def strides(
    connection: Connection, ns: str, start: Stretch | None, step: int, most: int = BATCH
) -> Iterator[list[Stretch]]:
    """A branch from its end back, in pieces of `step` runs, then of twice as many, up to `most`."""
    while start is not None:
        chain = walk(connection, ns, start, step + 1)
        yield chain[:step]
        start = chain[step] if len(chain) > step else None
        step = min(step * 2, most)


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in lots that fit one IN list."""
    for at in range(0, len(items), BATCH):
        yield items[at : at + BATCH]


def head_of(connection: Connection, ns: str, thread_id: str) -> Stretch | None:
    """The run that ends the thread's branch; None for an unknown thread or one without runs."""
    run_id = connection.execute(_HEAD, {"ns": ns, "thread": thread_id}).scalar()
    return None if run_id is None else Stretch(run_id)


def is_of_thread(connection: Connection, ns: str, thread_id: str, run_id: str) -> bool:
    """Whether a run is one of the thread's, on whichever branch."""
    place = {"ns": ns, "thread": thread_id, "run": run_id}
    return connection.execute(_OF_THREAD, place).scalar() is not None


def require_run(connection: Connection, ns: str, thread_id: str, run_id: str) -> Stretch:
    """The run. NotFound unless it is one of the thread's."""
    if not is_of_thread(connection, ns, thread_id, run_id):
        raise NotFound(f"Thread {thread_id} has no run {run_id}.", field="run_id")
    return Stretch(run_id)


def end_of_branch(connection: Connection, ns: str, thread_id: str, run_id: str | None) -> Stretch | None:
    """The run a branch ends at: `run_id`, which must be the thread's (NotFound), or the head."""
    if run_id is None:
        return head_of(connection, ns, thread_id)
    return require_run(connection, ns, thread_id, run_id)


def before(connection: Connection, ns: str, run_id: str) -> Stretch | None:
    """What a run follows, cut where it is; None at the start of history and for an unknown run."""
    row = connection.execute(_BEFORE, {"ns": ns, "run": run_id}).first()
    if row is None or row.previous_run_id is None:
        return None
    return Stretch(row.previous_run_id, row.branch_after_seq)


def number_of(connection: Connection, ns: str, run_id: str) -> int:
    """The number of a run. It is higher than those of all runs that it follows."""
    return connection.execute(_NUMBER, {"ns": ns, "run": run_id}).scalar_one()


def is_whole_on_branch(connection: Connection, ns: str, end: str, run_id: str) -> bool:
    """Whether all of a run stands on the branch that ends at `end`. Looks no further back than the run."""
    number = number_of(connection, ns, run_id)
    for stretches in strides(connection, ns, Stretch(end), _STEP):
        for stretch in stretches:
            if stretch.run_id == run_id:
                return stretch.whole
        if number_of(connection, ns, stretches[-1].run_id) <= number:
            return False
    return False
