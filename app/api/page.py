"""The embedded chat page: files from `static/`, under a strict content security policy."""

from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)


def folder() -> Path:
    """Where the page's files are: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "static"
    return inside if inside.is_dir() else package.parent / "static"


def page() -> list[Route]:
    """The page at `/` and each of its files beside it. No route that catches all, so that a path or a method
    that is not there is answered by the API."""
    files = _Guarded(StaticFiles(directory=folder(), html=True))
    names = ["", *sorted(path.name for path in folder().iterdir() if path.is_file())]
    return [Route(f"/{name}", files, methods=["GET"], include_in_schema=False) for name in names]


class _Guarded:
    """Adds the headers that keep the page to itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cache-Control"] = "no-cache"
            await send(message)

        await self._app(scope, receive, guarded)
