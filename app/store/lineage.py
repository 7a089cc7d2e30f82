"""Branches: the chain of previous runs, from a run back to the start of its thread."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import ColumnElement, Connection, Integer, and_, bindparam, func, literal, select
from sqlalchemy.sql.selectable import CTE, Select

from app.errors import NotFound
from app.store.records import THIS_RUN, THIS_THREAD
from app.store.tables import KEY, entries, runs, threads

BATCH = 500
_WHOLE = 2**31 - 1
T = TypeVar("T")


def _chain() -> Select[Any]:
    """Ids of a run and those before it, newest first, at most `depth` of them.

    Each step asks for one previous run by its key, in a subquery of its own, so neither database can
    choose to join the whole table of runs instead, which it would for a chain of guessed length.
    """
    first = select(
        bindparam("start", type_=KEY).label("id"), literal(1, Integer, literal_execute=True).label("depth")
    )
    chain: CTE = first.cte("chain", recursive=True)
    previous = (
        select(runs.c.previous_run_id)
        .where(runs.c.namespace == bindparam("ns"), runs.c.id == chain.c.id)
        .scalar_subquery()
    )
    step = select(previous, chain.c.depth + 1).where(
        chain.c.id.is_not(None), chain.c.depth < bindparam("depth")
    )
    chain = chain.union_all(step)
    return select(chain.c.id).where(chain.c.id.is_not(None)).order_by(chain.c.depth)


_CHAIN = _chain()
_HEAD = select(threads.c.head_run_id).where(THIS_THREAD)
_THREAD_OF = select(runs.c.thread_id).where(THIS_RUN)

OF_RUNS: ColumnElement[bool] = and_(
    entries.c.namespace == bindparam("ns"), entries.c.run_id.in_(bindparam("runs", expanding=True))
)
"""Finds the entries of some runs, by the parameters `ns` and `runs`."""

_COUNT_SHOWN = select(func.count()).select_from(entries).where(OF_RUNS, entries.c.shown)


def walk(connection: Connection, ns: str, start: str | None, depth: int = _WHOLE) -> list[str]:
    """Run ids from `start` back, newest first, at most `depth` of them; none without a start."""
    if start is None:
        return []
    found = connection.execute(_CHAIN, {"ns": ns, "start": start, "depth": depth})
    return [cast(str, run_id) for run_id in found.scalars()]


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in lots that fit one IN list."""
    for at in range(0, len(items), BATCH):
        yield items[at : at + BATCH]


def head_of(connection: Connection, ns: str, thread_id: str) -> str | None:
    """The run that ends the thread's branch; None for an unknown thread or one without runs."""
    return connection.execute(_HEAD, {"ns": ns, "thread": thread_id}).scalar()


def require_run(connection: Connection, ns: str, thread_id: str, run_id: str) -> str:
    """The run id. NotFound unless it is one of the thread's, on whichever branch."""
    if connection.execute(_THREAD_OF, {"ns": ns, "run": run_id}).scalar() != thread_id:
        raise NotFound(f"Thread {thread_id} has no run {run_id}.", field="run_id")
    return run_id


def end_of_branch(connection: Connection, ns: str, thread_id: str, run_id: str | None) -> str | None:
    """The run a branch ends at: `run_id`, which must be the thread's (NotFound), or the head."""
    if run_id is None:
        return head_of(connection, ns, thread_id)
    return require_run(connection, ns, thread_id, run_id)


def count_shown(connection: Connection, ns: str, run_ids: Sequence[str]) -> int:
    """How many messages of these runs a reader sees."""
    lots = batches(run_ids)
    return sum(connection.execute(_COUNT_SHOWN, {"ns": ns, "runs": lot}).scalar_one() for lot in lots)
