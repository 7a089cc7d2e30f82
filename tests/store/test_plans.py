"""What reading costs: by the plans of both databases, and by their own count of the work."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from app.conversation.entries import CustomEntry
from app.conversation.recall import Recall
from app.store import engine
from app.store.adapter import NewEntry, ThreadQuery
from app.store.opening import migrate
from app.store.sql import SqlStore
from tests.contracts.turns import NOON, NS, attributes, turn
from tests.store.long_thread import write_summarised_thread, write_thread
from tests.store.meters import MeteredPostgres, MeteredSqlite, Work

SHORT, LONG = 10, 2_000
SCAN = re.compile(r"(SCAN|Seq Scan on) (threads|runs|entries)")
Metered = MeteredSqlite | MeteredPostgres


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Metered]:
    """A database without threads."""
    if request.param == "postgresql":
        metered: Metered = MeteredPostgres(engine.postgres(request.getfixturevalue("postgres_url")))
    else:
        await migrate("", tmp_path)
        metered = MeteredSqlite(engine.sqlite_writer(tmp_path / "verbatim.db"))
    yield metered
    await metered.close()


def gather_statistics(connection: Connection) -> None:
    """What PostgreSQL does by itself now and then. SQLite is used without statistics."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


async def cost_of_pages(database: Metered, thread_id: str, turns: int) -> Work:
    """The work for a page at the end and one further back, of turns and of messages."""
    store = SqlStore(database)
    database.work = Work()
    await store.transcript_page(NS, thread_id, limit=3)  # what is prepared once is not counted
    database.work = Work()
    page = await store.transcript_page(NS, thread_id, limit=3)
    assert [row.run_id for row in page.rows] == [f"{thread_id}-{n}" for n in range(turns - 3, turns)]
    await store.transcript_page(NS, thread_id, limit=3, before_run_id=page.next_before_run_id)
    messages = await store.messages(NS, thread_id, renderer=1, limit=5)
    assert len(messages.rows) == 5
    await store.messages(NS, thread_id, renderer=1, limit=5, before=messages.next_before)
    cost, database.work = database.work, Work()
    return cost


@pytest.mark.requirement("HIS-12")
async def test_a_page_costs_the_same_on_a_short_thread_and_on_a_long_one(database: Metered):
    """PostgreSQL has seen the short one alone, and might keep the plans that were good for it."""
    await database.write(partial(write_thread, thread_id="short", turns=SHORT))
    await database.write(gather_statistics)
    for _ in range(10):  # ends with the plans that are kept
        await cost_of_pages(database, "short", SHORT)
    short = await cost_of_pages(database, "short", SHORT)
    await database.write(partial(write_thread, thread_id="long", turns=LONG))
    long = await cost_of_pages(database, "long", LONG)
    assert len(short.statements) == len(long.statements) <= 20
    assert short.steps > 0
    assert long.steps <= short.steps * 1.02


async def cost_of_recall(database: Metered, thread_id: str, turns: int, recall: Recall, given: int) -> Work:
    """The work for what stands before the last run of a thread."""
    store = SqlStore(database)
    database.work = Work()
    entries = await store.recall(NS, f"{thread_id}-{turns - 1}", recall)
    assert len(entries) == given
    cost, database.work = database.work, Work()
    return cost


@pytest.mark.requirement("AGT-09")
@pytest.mark.parametrize(("recall", "given"), [(Recall(summarised=True), 19), (Recall(turns=6), 13)])
async def test_what_a_model_is_given_costs_the_same_on_a_short_thread_and_on_a_long_one(
    database: Metered, recall: Recall, given: int
):
    """Of ten turns nine stand before the last run, with a summary in the newest of them."""
    for thread_id, turns in (("short", SHORT + 1), ("long", LONG)):
        await database.write(partial(write_summarised_thread, thread_id=thread_id, turns=turns, kept=SHORT))
    await database.write(gather_statistics)
    await cost_of_recall(database, "short", SHORT + 1, recall, given)
    short = await cost_of_recall(database, "short", SHORT + 1, recall, given)
    long = await cost_of_recall(database, "long", LONG, recall, given)
    assert short.steps > 0
    assert len(long.statements) <= len(short.statements) + 3  # it walks no further than twice as far
    assert long.steps <= short.steps * 2


@pytest.mark.requirement("HIS-12")
async def test_no_statement_about_a_branch_scans_a_table(database: Metered):
    await database.write(partial(write_thread, thread_id="short", turns=SHORT))
    await database.write(partial(write_thread, thread_id="long", turns=LONG))
    database.work = await cost_of_pages(database, "long", LONG)
    store = SqlStore(database)
    await store.head(NS, "long", [f"long-{n}-q" for n in range(3)])
    await store.run_entries(NS, "long-7")
    await store.runs(NS, "short")
    await turn(store, "r1", thread_id="long")
    await store.recall(NS, "r1", Recall(summarised=True))
    await store.fork_thread(NS, "long", "fork", attributes())
    await turn(store, "r2", thread_id="fork", previous_run_id="long-9", branch_after_entry="long-9-q")
    await store.head(NS, "fork", ["long-3-q", "r1-q"], run_id="long-1990")
    await store.messages(NS, "fork", renderer=1, limit=5)
    await store.add_records(NS, "fork", [NewEntry(CustomEntry(name="n", value=1))], NOON, run_id="r3")
    await store.runs(NS, "fork")
    await store.delete_thread(NS, "short", NOON)
    assert any("RECURSIVE" in statement for statement, _ in database.work.statements)
    for statement, parameters in database.work.statements:
        if statement.startswith(("SELECT", "WITH", "UPDATE", "DELETE")):
            plan = await database.plan(statement, parameters)
            assert not SCAN.search(plan), plan


@pytest.mark.requirement("HIS-17")
@pytest.mark.parametrize(
    ("query", "index"),
    [
        (ThreadQuery(), "ix_threads_shown"),
        (ThreadQuery(include_hidden=True), "ix_threads_activity"),
        (ThreadQuery(group_id="default", include_hidden=True), "ix_threads_group"),
        (ThreadQuery(parent_thread_id="p", include_hidden=True), "ix_threads_parent"),
    ],
)
async def test_a_listing_reads_one_index_and_sorts_nothing(database: Metered, query: ThreadQuery, index: str):
    for thread_id in ("a", "b", "c"):
        await database.write(partial(write_thread, thread_id=thread_id, turns=1))
    store = SqlStore(database)
    cursor = (await store.list_threads(NS, replace(query, limit=1, parent_thread_id=None))).next_cursor
    assert cursor is not None
    for asked in (query, replace(query, cursor=cursor)) if query.parent_thread_id is None else (query,):
        database.work = Work()
        await store.list_threads(NS, replace(asked, limit=1))
        (listing,) = database.work.statements
        plan = await database.plan(*listing, small=True)
        assert index in plan
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan
