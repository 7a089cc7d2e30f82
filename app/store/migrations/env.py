"""Runs the migrations on the connection that the caller opened and will commit."""

from typing import cast

from alembic import context
from sqlalchemy import Connection

from app.store.tables import metadata

context.configure(
    connection=cast(Connection, context.config.attributes["connection"]), target_metadata=metadata
)
context.run_migrations()
