"""Threads of any length, written without the store so that tests need not wait for it."""

from itertools import chain
from typing import Any

from sqlalchemy import Connection, insert, select

from app.clock import format_millis
from app.conversation.messages import Injected, Message, Role, assistant_message, user_message
from app.store.tables import entries, runs, threads
from tests.contracts.turns import NOON, NS


def write_thread(connection: Connection, thread_id: str, turns: int) -> None:
    """A thread of so many turns of two messages. Run ids are `<thread>-<number>`."""
    at = format_millis(NOON)
    ids = [f"{thread_id}-{n}" for n in range(turns)]
    thread: dict[str, Any] = {"namespace": NS, "id": thread_id, "agent": "a", "conversation_id": thread_id}
    thread |= {"group_id": "default", "hidden": False, "head_run_id": ids[-1], "run_count": turns}
    thread |= {"message_count": 2 * turns, "created_at": at, "updated_at": at}
    connection.execute(insert(threads), [thread])
    connection.execute(
        insert(runs), [_run(thread_id, *pair) for pair in zip(ids, [None, *ids], strict=False)]
    )
    said = chain.from_iterable((user_message("q", id=f"{run}-q"), assistant_message("a")) for run in ids)
    connection.execute(
        insert(entries), [_entry(thread_id, ids[n // 2], message) for n, message in enumerate(said)]
    )


def write_summarised_thread(connection: Connection, thread_id: str, turns: int, kept: int) -> None:
    """Such a thread, with a summary in the run before the last that covers all but the last `kept` turns."""
    write_thread(connection, thread_id, turns)
    covered = select(entries.c.entry_id).where(
        entries.c.run_id == f"{thread_id}-{turns - kept - 1}", entries.c.role == "assistant"
    )
    covers = connection.execute(covered).scalar_one()
    summary = user_message("all of it", id="summary", injected=Injected.META, covers=covers)
    row = _entry(thread_id, f"{thread_id}-{turns - 2}", summary)
    connection.execute(insert(entries), [row | {"shown": False, "covers": covers}])


def _run(thread_id: str, run_id: str, previous: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"namespace": NS, "id": run_id, "thread_id": thread_id, "agent": "a"}
    return row | {"previous_run_id": previous, "status": "completed", "created_at": format_millis(NOON)}


def _entry(thread_id: str, run_id: str, message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"namespace": NS, "thread_id": thread_id, "run_id": run_id}
    row |= {"entry_id": message.id, "kind": "message", "role": message.role.value, "shown": True}
    wire = "[]" if message.role is Role.USER else None
    return row | {"body": message.to_json(), "wire": wire, "renderer": 1 if wire else None}
