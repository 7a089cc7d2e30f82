"""The one family of errors. Each knows the status and the public words a client gets."""

from collections.abc import Mapping, Sequence

from app.paths import events_path


class AppError(Exception):
    """The request or the server's state does not allow this.

    `code` is a stable machine word, `status` an HTTP status, `public` a sentence that may be shown to
    anyone: it never holds exception text, headers or secrets. `field` names the offending input as a
    slash-separated path (`messages/0/id`), where there is one. `extra` adds members to the problem document.
    """

    code = "error"
    status = 500

    def __init__(
        self, public: str, *, field: str | None = None, extra: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(public)
        self.public = public
        self.field = field
        self.extra = dict(extra or {})


class InvalidInput(AppError):
    """A value of the request cannot be taken."""

    code = "invalid_input"
    status = 422


class NotFound(AppError):
    """No such thing in the caller's namespace."""

    code = "not_found"
    status = 404


class Conflict(AppError):
    """The thing exists already or is in a state that forbids this."""

    code = "conflict"
    status = 409


class ThreadBusy(Conflict):
    """The thread has a live run, so another cannot be claimed."""

    code = "thread_busy"

    def __init__(self, thread_id: str, run_id: str) -> None:
        super().__init__(
            f"Thread {thread_id} is answering in run {run_id}; wait for it, follow it or stop it.",
            extra={
                "threadId": thread_id,
                "runId": run_id,
                "stream": events_path(thread_id, run_id),
            },
        )
        self.thread_id = thread_id
        self.run_id = run_id


class RunExists(Conflict):
    """The run id is taken."""

    code = "run_exists"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run id {run_id} is already used; choose another.", field="runId")
        self.run_id = run_id


class HeadMoved(Conflict):
    """The thread went on between reading it and claiming it."""

    code = "head_moved"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"Thread {thread_id} went on meanwhile; read it again.")
        self.thread_id = thread_id


class InterruptsOpen(Conflict):
    """The thread waits for answers, and the request does not answer all that it waits for."""

    code = "interrupts_open"

    def __init__(self, interrupt_ids: Sequence[str]) -> None:
        super().__init__(
            "The thread waits for answers; resume with one for each open interrupt, or cancel it.",
            field="resume",
            extra={"interruptIds": list(interrupt_ids)},
        )


class InterruptExpired(Conflict):
    """The answer came too late."""

    code = "interrupt_expired"

    def __init__(self, interrupt_id: str, field: str) -> None:
        super().__init__(
            f"Interrupt {interrupt_id} has expired; cancel it to go on with the thread.", field=field
        )


class AlreadyResumed(Conflict):
    """Another run has answered these interrupts."""

    code = "already_resumed"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id} has been resumed already.", field="resume")
        self.run_id = run_id


class RunFailed(AppError):
    """A run that was waited for gave no answer. The code is the reason for its end."""

    code = "run_failed"

    def __init__(self, reason: str, public: str) -> None:
        super().__init__(public)
        self.code = reason


class NotSupported(AppError):
    """The configured storage does not offer this."""

    code = "not_supported"
    status = 501


class StoreClosed(AppError):
    """The store was used after it was closed."""

    code = "store_closed"
    status = 503


class StorageFailed(AppError):
    """The database refused or could not be reached."""

    code = "storage_failed"
    status = 503


class OutcomeUnknown(StorageFailed):
    """The answer to a COMMIT was lost, so the unit was stored whole or not at all. `result` is what it
    would have returned."""

    def __init__(self, result: object) -> None:
        super().__init__("The database broke off while this was stored. It may or may not have been stored.")
        self.result = result


class StartupRefused(AppError):
    """The server must not start like this: the message says what is wrong and the way out."""

    code = "startup_refused"
