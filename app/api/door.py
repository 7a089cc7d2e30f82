"""What every request passes first: who may knock, and whether the body can be read at all.

Plain ASGI, so that streams pass untouched. While no credentials are configured any web page could post to
a server on this machine; so only loopback host names are answered, a foreign Origin is refused, and a body
must be declared as JSON, which a browser does not send across origins without asking first.
"""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.bodies import parse_json
from app.api.problems import problem, problem_of
from app.errors import AppError
from app.settings import is_loopback

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?", re.ASCII)
MAX_BODY_BYTES = 16 * 1024 * 1024
JSON_KEY = "verbatim.json"
"""Where in the scope the parsed body stands."""


class Door:
    """ASGI middleware: 403 for a foreign host name or Origin, 415 for a body that is not JSON, 413 for one
    that is too large, 400 or 422 for one that cannot be read; the parsed body goes into the scope."""

    def __init__(self, app: ASGIApp, *, loopback_only: bool, origins: Sequence[str]) -> None:
        self._app = app
        self._loopback_only = loopback_only
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        try:
            body = await _read(scope, receive)
            if body:
                scope[JSON_KEY] = parse_json(body)
        except AppError as error:
            await problem_of(error)(scope, receive, send)
            return
        await self._app(scope, _Replay(body, receive), send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._loopback_only and not is_loopback(_host_name(host)):
            return problem(
                403, "foreign_host", "This server answers only to loopback host names.", field="Host"
            )
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and not _is_own(origin, host):
            detail = "This origin may not use the server; VERBATIM_CORS_ORIGINS lists those that may."
            return problem(403, "foreign_origin", detail, field="Origin")
        if b"%2f" in scope.get("raw_path", b"").lower():
            return problem(422, "invalid_input", "An id in the path may not hold a slash.", field="path")
        if b"%00" in scope["query_string"]:
            return problem(
                422, "invalid_input", "Text may not hold the character NUL.", field=_with_nul(scope)
            )
        return None


class TooLarge(AppError):
    """The body is larger than the server takes."""

    code = "too_large"
    status = 413


class NotDeclaredJson(AppError):
    """The body's media type is not JSON."""

    code = "unsupported_media_type"
    status = 415


def _host_name(host: str) -> str:
    """The name in a Host header, without port; empty where the header is no host."""
    match = _HOST.fullmatch(host)
    return match["name"] if match else ""


def _is_own(origin: str, host: str) -> bool:
    """Whether a page of this server sent it. The scheme may differ: what is in front may speak TLS."""
    scheme, separator, rest = origin.partition("://")
    return (
        scheme in ("http", "https") and bool(separator) and rest == host and _HOST.fullmatch(host) is not None
    )


def _with_nul(scope: Scope) -> str:
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return next((name.replace("\0", "?")[:80] for name, value in query if "\0" in name + value), "query")


async def _read(scope: Scope, receive: Receive) -> bytes:
    """The whole body. TooLarge as soon as that is known; NotDeclaredJson if it is of another type."""
    headers = Headers(scope=scope)
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > MAX_BODY_BYTES:
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise _too_large()
        chunks.append(chunk)
        more = message.get("more_body", False)
    if size and headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise NotDeclaredJson("A body must be sent as application/json.", field="Content-Type")
    return b"".join(chunks)


def _too_large() -> TooLarge:
    return TooLarge(f"A body may have at most {MAX_BODY_BYTES} bytes.", field="body")


class _Replay:
    """Gives the body that was read once more, and then what the connection says."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._message: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._receive = receive

    async def __call__(self) -> Message:
        message, self._message = self._message, None
        return await self._receive() if message is None else message


def body_of(scope: Scope) -> Any:
    """The parsed body of a request, None where there was none."""
    return scope.get(JSON_KEY)
