"""Branches that begin inside a run, forks, paused runs that were taken up, results, and summaries."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("threads", sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("threads", sa.Column("deleted_at", KEY, nullable=True))
    op.create_index("ix_threads_conversation", "threads", ["namespace", "conversation_id"])
    op.add_column("runs", sa.Column("branch_after_entry", KEY, nullable=True))
    op.add_column("runs", sa.Column("branch_after_seq", SEQ, nullable=True))
    op.add_column("runs", sa.Column("resumed_by", KEY, nullable=True))
    op.add_column("runs", sa.Column("result", sa.Text, nullable=True))
    op.add_column("entries", sa.Column("covers", KEY, nullable=True))
    op.create_index(
        "ix_entries_summary",
        "entries",
        ["namespace", "run_id", "seq"],
        sqlite_where=sa.text("covers IS NOT NULL"),
        postgresql_where=sa.text("covers IS NOT NULL"),
    )
