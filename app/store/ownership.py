"""One process owns a SQLite database. The lock is the kernel's, so a killed owner leaves none behind."""

import fcntl
import os
from pathlib import Path

from app.errors import StartupRefused


class FileLock:
    """The ownership of a database file, held until `release` or the end of the process.

    The pid in the lock file is there for the message to whoever comes second; it decides nothing.
    """

    def __init__(self, database: Path) -> None:
        """StartupRefused, naming the owner, if another process has it."""
        self.path = database.with_name(database.name + ".lock")
        self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 32, 0).decode("ascii", "replace").strip()
            self._close()
            raise StartupRefused(_refusal(database, owner)) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Gives it up; a second time does nothing. The file stays: removing it would let two in at once."""
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _refusal(database: Path, owner: str) -> str:
    who = f"process {owner}" if owner else "another process"
    return (
        f"{database} is in use by {who}. A SQLite database has one owner: stop that process first, "
        "set VERBATIM_DATA_DIR to another directory, or use PostgreSQL (VERBATIM_DATABASE_URL)."
    )
