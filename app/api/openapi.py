"""The description of the API: problem documents, event streams, and AG-UI's own shapes."""

from typing import Any

from ag_ui.core import RunAgentInput
from fastapi import FastAPI

_REF = "#/components/schemas/{model}"
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "A stable word for machines."},
        "detail": {"type": "string", "description": "A sentence for people."},
        "field": {"type": "string", "description": "The value at fault, as a path."},
    },
}


def _refusal(description: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(model="Problem")}
    return {"description": description, "content": {"application/problem+json": {"schema": schema}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    422: _refusal("A value cannot be taken."),
    "4XX": _refusal("The request cannot be served; the problem document says why."),
    "5XX": _refusal("The server failed; what was accepted before is kept."),
}
"""What every route may answer beside its own (RFC 9457)."""
EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "AG-UI events as server-sent events, `id: <run seq>.<epoch>.<number>`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
"""How a stream is told."""
RUN_INPUT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": _REF.format(model="RunAgentInput")}}},
    }
}
"""The body of an AG-UI run, which is read by hand."""


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the shapes that no route declares."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        shapes = document.setdefault("components", {}).setdefault("schemas", {})
        run_input = RunAgentInput.model_json_schema(by_alias=True, ref_template=_REF)
        shapes |= run_input.pop("$defs")
        shapes["RunAgentInput"] = run_input
        shapes["Problem"] = _PROBLEM
    assert app.openapi_schema is not None
    return app.openapi_schema
