"""A process that owns a database, for tests that need one beside their own: `python -m tests.store.owner`."""

import asyncio
import sys
from pathlib import Path

from app.store.opening import open_store
from tests.contracts.turns import asked, claim_of, turn


async def own(database_url: str, data_dir: Path) -> None:
    """Stores a turn, starts another, says so on standard output, and waits to be killed."""
    store = await open_store(database_url, data_dir)
    await turn(store, "r1")
    await store.claim(claim_of("r2", asked("r2")))
    print("owned", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(own(sys.argv[1], Path(sys.argv[2])))
