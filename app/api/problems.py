"""Errors as problem documents (RFC 9457). Never exception text, never the input."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from app.errors import AppError

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 20
LONGEST_NAME = 80
"""How much of a client's own names a refusal repeats."""
_METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE")
_WHERE = ("body", "query", "path", "header")


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    field: str | None = None,
    extra: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document: `code` for machines, `detail` for people, `field` where one value is at fault."""
    document: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }
    if field is not None:
        document["field"] = field
    document.update(extra or {})
    return Response(orjson.dumps(document), status, headers, media_type=MEDIA_TYPE)


def problem_of(error: AppError) -> Response:
    """The problem document of one of our errors."""
    headers = {"Retry-After": "1"} if error.status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return problem(
        error.status, error.code, error.public, field=error.field, extra=error.extra, headers=headers
    )


def install(app: FastAPI) -> None:
    """Makes every error of the application a problem document."""

    async def on_app_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, AppError)
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem_of(error)

    async def on_validation_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _problem_of_validation(error.errors())

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "_")
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_allowed(request))
        return problem(error.status_code, code, f"{phrase}.", headers=headers)

    async def on_anything(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "internal_error", "Something went wrong inside the server.")

    app.add_exception_handler(AppError, on_app_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_anything)


def _allowed(request: Request) -> list[str]:
    """The methods that the path takes, over all routes: a router names those of the first alone."""
    routes = request.app.router.routes
    scopes = ({**request.scope, "method": method} for method in _METHODS)
    return [
        scope["method"] for scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)
    ]


def _problem_of_validation(errors: Sequence[Any]) -> Response:
    faults = [{"field": _path(error["loc"]), "message": error["msg"]} for error in errors[:MOST_FAULTS]]
    first = faults[0]
    detail = f"{first['field']}: {first['message']}"
    return problem(422, "invalid_input", detail, field=first["field"], extra={"errors": faults})


def _path(location: Sequence[str | int]) -> str:
    parts = location[1:] if len(location) > 1 and location[0] in _WHERE else location
    return "/".join(str(part)[:LONGEST_NAME] for part in parts)
