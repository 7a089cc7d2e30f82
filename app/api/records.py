"""Records of the application, as requests bring them."""

from collections.abc import Sequence

from app.agui.accepting import check_new_id
from app.api.deps import Principal
from app.api.shapes import NewRecord
from app.clock import Clock, new_id
from app.conversation.entries import CustomEntry
from app.errors import Conflict, InvalidInput


def read_records(asked: Sequence[NewRecord], principal: Principal, clock: Clock) -> list[CustomEntry]:
    """The records with ids and the present time. InvalidInput for an id that is not theirs to take or stands
    twice."""
    now = clock.now()
    seen: set[str] = set()
    records: list[CustomEntry] = []
    for index, record in enumerate(asked):
        if record.id is not None:
            check_new_id(record.id, f"entries/{index}/id")
            if record.id in seen:
                raise InvalidInput("Each entry needs an id of its own.", field=f"entries/{index}/id")
            seen.add(record.id)
        id = record.id or new_id("entry")
        records.append(CustomEntry(record.name, record.value, now, principal.sender_id, id))
    return records


def refuse_known(records: Sequence[CustomEntry], known: frozenset[str]) -> None:
    """Conflict for a record whose id the thread holds: of two entries under one id a reader keeps one."""
    for index, record in enumerate(records):
        if record.id in known:
            raise Conflict("The thread holds an entry of this id already.", field=f"entries/{index}/id")
