"""Where things are on this server. Ids are quoted: they may hold any letter there is."""

from urllib.parse import quote


def thread_path(thread_id: str) -> str:
    """The path of a thread, in ASCII."""
    return f"/threads/{quote(thread_id, safe='')}"


def run_path(thread_id: str, run_id: str) -> str:
    """The path of a run."""
    return f"{thread_path(thread_id)}/runs/{quote(run_id, safe='')}"


def events_path(thread_id: str, run_id: str) -> str:
    """The path of a run's event stream."""
    return f"{run_path(thread_id, run_id)}/events"
