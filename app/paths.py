"""Where things are on this server. Ids are quoted: they may hold any letter there is."""

from urllib.parse import quote


def quoted(id: str) -> str:
    """An id in ASCII, as one segment of a path or the value of a header."""
    return quote(id, safe="")


def thread_path(thread_id: str) -> str:
    """The path of a thread, in ASCII."""
    return f"/threads/{quoted(thread_id)}"


def run_path(thread_id: str, run_id: str) -> str:
    """The path of a run."""
    return f"{thread_path(thread_id)}/runs/{quoted(run_id)}"


def events_path(thread_id: str, run_id: str) -> str:
    """The path of a run's event stream."""
    return f"{run_path(thread_id, run_id)}/events"
