"""A folder outside the checkout for what is costly to fetch: made once, whole or not at all."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_root() -> Path:
    """`verbatim-tests` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "verbatim-tests"


def cached(name: str, key: bytes, build: Callable[[Path], None], root: Path | None = None) -> Path:
    """The folder that `build` filled for this name and key, filled now if it does not exist.

    Processes that ask at the same time wait for one of them to build. A folder appears under its final
    name when it is complete, so a build that was killed leaves nothing that looks usable.
    """
    root = root or cache_root()
    root.mkdir(parents=True, exist_ok=True)
    final = root / f"{name}-{hashlib.sha256(key).hexdigest()[:16]}"
    if final.is_dir():
        return final
    with (root / f"{final.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            _build(final, build)
    return final


def _build(final: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f"{final.name}.", suffix=".part", dir=final.parent))
    try:
        build(unfinished)
        unfinished.rename(final)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
