"""The history of the schema, for Alembic. Each revision runs on SQLite and on PostgreSQL."""
