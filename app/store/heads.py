"""What stands at the end of a branch: its run, and which entries the thread holds already."""

from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy import Connection, bindparam, select

from app.errors import NotFound
from app.store.adapter import HeadRecord
from app.store.database import SqlPart
from app.store.lineage import BATCH, Stretch, batches, number_of, require_run, strides
from app.store.records import RUNS, THIS_RUN, THIS_THREAD, THREADS, read_run, read_thread
from app.store.tables import entries, runs
from app.store.thread_rows import conversation_of

_THREAD = THREADS.where(THIS_THREAD)
_RUN = RUNS.where(THIS_RUN)
_PLACES = select(entries.c.entry_id, entries.c.run_id, entries.c.seq).where(
    entries.c.namespace == bindparam("ns"),
    entries.c.thread_id == bindparam("thread"),
    entries.c.entry_id.in_(bindparam("asked", expanding=True)),
)
_NUMBERS = select(runs.c.id, runs.c.seq).where(
    runs.c.namespace == bindparam("ns"), runs.c.id.in_(bindparam("runs", expanding=True))
)
Places = dict[str, dict[str, int]]
"""By entry id the runs that hold it, on whichever branch, with its number there."""


class Heads(SqlPart):
    """The ends of branches."""

    async def head(
        self, namespace: str, thread_id: str, entry_ids: Sequence[str], *, run_id: str | None = None
    ) -> HeadRecord:
        unit = partial(_head, ns=namespace, thread_id=thread_id, asked=entry_ids, run_id=run_id)
        return await self._database.read(unit)


def _head(
    connection: Connection, ns: str, thread_id: str, asked: Sequence[str], run_id: str | None
) -> HeadRecord:
    row = connection.execute(_THREAD, {"ns": ns, "thread": thread_id}).first()
    if row is None and run_id is not None:
        raise NotFound(f"Thread {thread_id} has no run {run_id}.", field="run_id")
    thread = None if row is None else read_thread(row)
    if row is None or thread is None or thread.head_run_id is None:
        return HeadRecord(thread, None)
    end = Stretch(thread.head_run_id) if run_id is None else require_run(connection, ns, thread_id, run_id)
    head = read_run(connection.execute(_RUN, {"ns": ns, "run": end.run_id}).one())
    together = [thread_id]
    if row.shared:
        together = [other.id for other in conversation_of(connection, ns, thread_id)]
    return HeadRecord(thread, head, _known(connection, ns, end, _places(connection, ns, together, asked)))


def _places(connection: Connection, ns: str, thread_ids: Sequence[str], asked: Sequence[str]) -> Places:
    places: Places = {}
    for thread_id in thread_ids:
        for lot in batches(asked):
            place = {"ns": ns, "thread": thread_id, "asked": lot}
            for entry_id, run_id, seq in connection.execute(_PLACES, place):
                places.setdefault(entry_id, {})[run_id] = seq
    return places


def _known(connection: Connection, ns: str, end: Stretch, places: Places) -> dict[str, str]:
    """Where the entries stand: on the branch, in its newest run that holds them, or else in the newest of
    all runs."""
    if not places:
        return {}
    known = _on_branch(connection, ns, end, places)
    if len(known) < len(places):
        elsewhere = {entry_id: held for entry_id, held in places.items() if entry_id not in known}
        numbers = _numbers(connection, ns, elsewhere)
        for entry_id, held in elsewhere.items():
            known[entry_id] = max(held, key=numbers.__getitem__)
    return known


def _on_branch(connection: Connection, ns: str, end: Stretch, places: Places) -> dict[str, str]:
    """The entries that stand on the branch. It is followed only as far back as one of them may be found:
    a run has a higher number than those before it."""
    open_ids = set(places)
    known: dict[str, str] = {}
    oldest: int | None = None
    for stretches in strides(connection, ns, end, BATCH):
        depth = {stretch.run_id: at for at, stretch in enumerate(stretches)}
        for entry_id in list(open_ids):
            here = [depth[run_id] for run_id in places[entry_id] if run_id in depth]
            here = [at for at in here if stretches[at].holds(places[entry_id][stretches[at].run_id])]
            if here:
                known[entry_id] = stretches[min(here)].run_id
                open_ids.discard(entry_id)
        if not open_ids:
            break
        if oldest is None:
            numbers = _numbers(connection, ns, {entry_id: places[entry_id] for entry_id in open_ids})
            oldest = min(numbers.values())
        if number_of(connection, ns, stretches[-1].run_id) <= oldest:
            break
    return known


def _numbers(connection: Connection, ns: str, places: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """The numbers of the runs of these places."""
    run_ids = sorted({run_id for held in places.values() for run_id in held})
    numbers: dict[str, int] = {}
    for lot in batches(run_ids):
        numbers.update({row.id: row.seq for row in connection.execute(_NUMBERS, {"ns": ns, "runs": lot})})
    return numbers
