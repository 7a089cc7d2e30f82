"""Durable history: SQLModel tables on SQLite or PostgreSQL, behind two seams."""
