"""Threads, their runs, and the entries of those."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_threads()
    _create_runs()
    _create_entries()
    _forbid_rewriting()


def _key(name: str, *, nullable: bool = False, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, KEY, nullable=nullable, primary_key=primary_key)


def _create_threads() -> None:
    op.create_table(
        "threads",
        _key("namespace", primary_key=True),
        _key("id", primary_key=True),
        _key("agent"),
        _key("conversation_id"),
        _key("group_id"),
        _key("parent_thread_id", nullable=True),
        sa.Column("hidden", sa.Boolean, nullable=False),
        sa.Column("title", sa.Text, nullable=True),
        _key("archived_at", nullable=True),
        _key("head_run_id", nullable=True),
        sa.Column("run_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("message_count", sa.Integer, nullable=False, server_default="0"),
        _key("created_at"),
        _key("updated_at"),
    )
    newest_first = [sa.text("updated_at DESC"), sa.text("id DESC")]
    op.create_index("ix_threads_activity", "threads", ["namespace", *newest_first])
    op.create_index(
        "ix_threads_shown",
        "threads",
        ["namespace", *newest_first],
        sqlite_where=sa.text("hidden = 0"),
        postgresql_where=sa.text("NOT hidden"),
    )
    op.create_index("ix_threads_group", "threads", ["namespace", "group_id", *newest_first])
    op.create_index("ix_threads_parent", "threads", ["namespace", "parent_thread_id", *newest_first])


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("seq", SEQ, primary_key=True, autoincrement=True),
        _key("namespace"),
        _key("id"),
        _key("thread_id"),
        _key("agent"),
        _key("sender_id", nullable=True),
        _key("previous_run_id", nullable=True),
        _key("parent_run_id", nullable=True),
        _key("status"),
        _key("end_reason", nullable=True),
        _key("owner", nullable=True),
        sa.Column("epoch", sa.Integer, nullable=False, server_default="1"),
        sa.Column("state", sa.Text, nullable=True),
        sa.Column("meta", sa.Text, nullable=True),
        sa.Column("input", sa.Text, nullable=True),
        sa.Column("interrupts", sa.Text, nullable=False, server_default="[]"),
        sa.Column("usage", sa.Text, nullable=False, server_default="[]"),
        sa.Column("error", sa.Text, nullable=True),
        _key("digest", nullable=True),
        _key("created_at"),
        _key("ended_at", nullable=True),
        sa.UniqueConstraint("namespace", "id", name="uq_runs_id"),
        sa.ForeignKeyConstraint(
            ["namespace", "thread_id"], ["threads.namespace", "threads.id"], name="fk_runs_thread"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_thread", "runs", ["thread_id", "namespace", "seq"])
    op.create_index(
        "uq_runs_running",
        "runs",
        ["namespace", "thread_id"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )


def _create_entries() -> None:
    op.create_table(
        "entries",
        sa.Column("seq", SEQ, primary_key=True, autoincrement=True),
        _key("namespace"),
        _key("thread_id"),
        _key("run_id"),
        _key("entry_id"),
        _key("kind"),
        _key("role", nullable=True),
        _key("injected", nullable=True),
        sa.Column("origin", sa.Text, nullable=True),
        _key("sender_id", nullable=True),
        sa.Column("created_at", sa.BigInteger, nullable=True),
        sa.Column("shown", sa.Boolean, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("wire", sa.Text, nullable=True),
        sa.Column("renderer", sa.Integer, nullable=True),
        sa.UniqueConstraint("namespace", "run_id", "entry_id", name="uq_entries_id"),
        sa.ForeignKeyConstraint(
            ["namespace", "run_id"], ["runs.namespace", "runs.id"], name="fk_entries_run"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_entries_run", "entries", ["namespace", "run_id", "seq"])
    op.create_index("ix_entries_entry", "entries", ["namespace", "thread_id", "entry_id"])


def _forbid_rewriting() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE TRIGGER entries_are_never_rewritten BEFORE UPDATE ON entries "
            "BEGIN SELECT RAISE(ABORT, 'a stored entry is never rewritten'); END"
        )
        return
    op.execute(
        "CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a stored entry is never rewritten'; END $$"
    )
    op.execute(
        "CREATE TRIGGER entries_are_never_rewritten BEFORE UPDATE ON entries "
        "FOR EACH ROW EXECUTE FUNCTION refuse_rewriting()"
    )
