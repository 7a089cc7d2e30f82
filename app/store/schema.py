"""The revision of a database's schema, and how to bring it to the newest."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.errors import StartupRefused

MIGRATIONS = Path(__file__).parent / "migrations"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def newest_revision() -> str:
    """The revision that this version of the program needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def current_revision(connection: Connection) -> str | None:
    """The revision a database is at; None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade(connection: Connection, revision: str = "head") -> str:
    """Brings the schema to a revision within the caller's transaction, and returns it.

    StartupRefused for a database that a newer version of the program wrote.
    """
    present = current_revision(connection)
    if present is not None:
        refuse_newer(present)
    if present != newest_revision():
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    reached = current_revision(connection)
    assert reached is not None
    return reached


def refuse_newer(revision: str) -> None:
    """StartupRefused for a revision that this version of the program does not know."""
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if revision not in known:
        raise StartupRefused(
            f"The database is at revision {revision}, which this version of Verbatim does not know. "
            "A newer version wrote it: start that one, or restore a copy made before the upgrade."
        )


def require_newest(connection: Connection) -> None:
    """StartupRefused, naming the command that helps, unless the schema is at the newest revision."""
    present, newest = current_revision(connection), newest_revision()
    if present == newest:
        return
    if present is not None:
        refuse_newer(present)
    where = "is empty" if present is None else f"is at revision {present}"
    raise StartupRefused(
        f"The database {where}; this version needs revision {newest}. Run: python -m app migrate"
    )
