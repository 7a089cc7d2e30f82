"""The tables. Every key begins with the namespace, and every query takes it from its caller.

`migrations/` holds the same schema as history; a test compares the two.
"""

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)
from sqlmodel import Field, SQLModel

KEY = Text().with_variant(Text(collation="C"), "postgresql")
"""Ids and times: compared byte by byte, so that both databases sort alike."""

SEQ = BigInteger().with_variant(Integer(), "sqlite")
"""A number that grows with insertion and is never given out twice."""


class JsonText(TypeDecorator[Any]):
    """JSON kept as text, since a database's own JSON type rewrites what it is given. None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def key(*, nullable: bool = False, primary: bool = False) -> Any:
    """A column for an id or a time."""
    return Field(sa_column=Column(KEY, nullable=nullable, primary_key=primary))


def words(*, nullable: bool = False) -> Any:
    """A column for text that is not compared."""
    return Field(sa_column=Column(Text, nullable=nullable))


def json_text(*, nullable: bool = True, default: str | None = None) -> Any:
    """A column for JSON."""
    return Field(sa_column=Column(JsonText, nullable=nullable, server_default=default))


def number(*, default: str | None = None) -> Any:
    """A column for a count."""
    return Field(sa_column=Column(Integer, nullable=False, server_default=default))


def seq() -> Any:
    """The insertion sequence of a table."""
    return Field(sa_column=Column(SEQ, primary_key=True, autoincrement=True))


class Threads(SQLModel, table=True):
    """Each row is a conversation, unique by (namespace, id).

    `agent`, `conversation_id`, `group_id`, `parent_thread_id`, `hidden` and `created_at` never change.
    `head_run_id` names the leaf of the branch that is continued; the counts are of that branch, messages
    those a reader sees. Times are RFC 3339 with three fractional digits, so they sort as text;
    `updated_at` never goes back. `shared` tells that runs of the conversation may stand in several threads.
    A thread that was deleted while others still reach runs of it stays as a tombstone: `deleted_at` is set,
    and nobody sees it.
    """

    namespace: str = key(primary=True)
    id: str = key(primary=True)
    agent: str = key()
    conversation_id: str = key()
    group_id: str = key()
    parent_thread_id: str | None = key(nullable=True)
    hidden: bool = Field(sa_column=Column(Boolean, nullable=False))
    title: str | None = words(nullable=True)
    archived_at: str | None = key(nullable=True)
    head_run_id: str | None = key(nullable=True)
    run_count: int = number(default="0")
    message_count: int = number(default="0")
    created_at: str = key()
    updated_at: str = key()
    shared: bool = Field(sa_column=Column(Boolean, nullable=False, server_default=false()))
    deleted_at: str | None = key(nullable=True)


class Runs(SQLModel, table=True):
    """Each row is one turn of a thread and its execution, unique by (namespace, id).

    At most one run of a thread is running: a partial unique index says so, and a claim is nothing but an
    insert that this index lets through. `previous_run_id` makes the runs of a conversation a tree and never
    changes; neither do thread and creation time. `branch_after_entry` is the last entry of the previous run
    that stands on this one's branch, `branch_after_seq` its number; both are NULL where all of it does.
    `resumed_by` is set once, on a paused run. `status` changes only by updates that name the status they
    expect.
    """

    __table_args__ = (
        UniqueConstraint("namespace", "id", name="uq_runs_id"),
        ForeignKeyConstraint(
            ["namespace", "thread_id"], ["threads.namespace", "threads.id"], name="fk_runs_thread"
        ),
        {"sqlite_autoincrement": True},
    )

    seq: int = seq()
    namespace: str = key()
    id: str = key()
    thread_id: str = key()
    agent: str = key()
    sender_id: str | None = key(nullable=True)
    previous_run_id: str | None = key(nullable=True)
    parent_run_id: str | None = key(nullable=True)
    status: str = key()
    end_reason: str | None = key(nullable=True)
    owner: str | None = key(nullable=True)
    epoch: int = number(default="1")
    state: Any = json_text()
    meta: Any = json_text()
    input: Any = json_text()
    interrupts: Any = json_text(nullable=False, default="[]")
    usage: Any = json_text(nullable=False, default="[]")
    error: Any = json_text()
    digest: str | None = key(nullable=True)
    created_at: str = key()
    ended_at: str | None = key(nullable=True)
    branch_after_entry: str | None = key(nullable=True)
    branch_after_seq: int | None = Field(sa_column=Column(SEQ, nullable=True))
    resumed_by: str | None = key(nullable=True)
    result: Any = json_text()


class Entries(SQLModel, table=True):
    """Each row is something said, or an application's record. It is never rewritten: a trigger refuses it.

    `seq` is the order within a run. `body` is the message's own JSON, as text. `shown` tells whether a
    reader may see it. `wire` is its rendering for clients of version `renderer`, where one was made.
    `created_at` is in nanoseconds since 1970; NULL where the time is not known. `covers` is the last message
    that a summary covers.
    """

    __table_args__ = (
        UniqueConstraint("namespace", "run_id", "entry_id", name="uq_entries_id"),
        ForeignKeyConstraint(["namespace", "run_id"], ["runs.namespace", "runs.id"], name="fk_entries_run"),
        {"sqlite_autoincrement": True},
    )

    seq: int = seq()
    namespace: str = key()
    thread_id: str = key()
    run_id: str = key()
    entry_id: str = key()
    kind: str = key()
    role: str | None = key(nullable=True)
    injected: str | None = key(nullable=True)
    origin: str | None = words(nullable=True)
    sender_id: str | None = key(nullable=True)
    created_at: int | None = Field(sa_column=Column(BigInteger, nullable=True))
    shown: bool = Field(sa_column=Column(Boolean, nullable=False))
    body: str = words()
    wire: str | None = words(nullable=True)
    renderer: int | None = Field(sa_column=Column(Integer, nullable=True))
    covers: str | None = key(nullable=True)


metadata = SQLModel.metadata


threads = metadata.tables["threads"]
runs = metadata.tables["runs"]
entries = metadata.tables["entries"]

_newest_first = (threads.c.updated_at.desc(), threads.c.id.desc())
Index("ix_threads_activity", threads.c.namespace, *_newest_first)
Index(
    "ix_threads_shown",
    threads.c.namespace,
    *_newest_first,
    sqlite_where=text("hidden = 0"),
    postgresql_where=text("NOT hidden"),
)
Index("ix_threads_group", threads.c.namespace, threads.c.group_id, *_newest_first)
Index("ix_threads_parent", threads.c.namespace, threads.c.parent_thread_id, *_newest_first)
Index("ix_threads_conversation", threads.c.namespace, threads.c.conversation_id)
# Led by the thread: without statistics PostgreSQL may take any index that begins with the namespace for as
# good as the key itself, and read all runs of a namespace to find one.
Index("ix_runs_thread", runs.c.thread_id, runs.c.namespace, runs.c.seq)
Index(
    "uq_runs_running",
    runs.c.namespace,
    runs.c.thread_id,
    unique=True,
    sqlite_where=text("status = 'running'"),
    postgresql_where=text("status = 'running'"),
)
Index("ix_entries_run", entries.c.namespace, entries.c.run_id, entries.c.seq)
Index("ix_entries_entry", entries.c.namespace, entries.c.thread_id, entries.c.entry_id)
Index(
    "ix_entries_summary",
    entries.c.namespace,
    entries.c.run_id,
    entries.c.seq,
    sqlite_where=text("covers IS NOT NULL"),
    postgresql_where=text("covers IS NOT NULL"),
)
