"""The SQL store: both seams, and all that the server's API needs, over one database."""

from app.store.application_records import ApplicationRecords
from app.store.claims import Claims
from app.store.deletion import Deletions
from app.store.forks import Forks
from app.store.heads import Heads
from app.store.hydration import Hydrations
from app.store.recall import Recollections
from app.store.runs import Ledger
from app.store.saves import Saves
from app.store.threads import Threads
from app.store.transcript import Transcripts


class SqlStore(
    Threads,
    Heads,
    Forks,
    Deletions,
    Claims,
    Ledger,
    Saves,
    ApplicationRecords,
    Transcripts,
    Hydrations,
    Recollections,
):
    """Implements `app.store.adapter.Store`. Made by `app.store.opening.open_store`; its maker closes it."""

    async def close(self) -> None:
        """Commits what waits, then releases everything. Twice is harmless; later calls raise StoreClosed."""
        await self._database.close()
