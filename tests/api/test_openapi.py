"""The description of the API is sound, and tells of streams and refusals."""

from typing import Any, cast

from app.main import create_app
from app.settings import Settings


def description() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def references(part: Any) -> list[str]:
    """Every `$ref` in a part of the document."""
    if isinstance(part, dict):
        members = cast(dict[str, Any], part)
        own = [members["$ref"]] if isinstance(members.get("$ref"), str) else []
        return own + [ref for member in members.values() for ref in references(member)]
    return (
        [ref for item in cast(list[Any], part) for ref in references(item)] if isinstance(part, list) else []
    )


def test_every_reference_leads_somewhere() -> None:
    document = description()
    found = references(document)
    assert len(found) > 50
    for reference in found:
        place: Any = document
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]


def test_streams_are_described_as_event_streams() -> None:
    paths = description()["paths"]
    for method, path in [
        ("post", "/agents/{agent}/run"),
        ("post", "/threads/{thread_id}/runs"),
        ("get", "/threads/{thread_id}/stream"),
        ("get", "/threads/{thread_id}/runs/{run_id}/events"),
    ]:
        assert "text/event-stream" in paths[path][method]["responses"]["200"]["content"]
    body = paths["/agents/{agent}/run"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/RunAgentInput"}


def test_every_route_tells_of_its_refusals_as_problem_documents() -> None:
    for operations in description()["paths"].values():
        for operation in operations.values():
            for status in ("422", "4XX", "5XX"):
                assert list(operation["responses"][status]["content"]) == ["application/problem+json"]


def test_the_routes_are_those_of_the_readme() -> None:
    routes = {(method, path) for path, operations in description()["paths"].items() for method in operations}
    assert routes == {
        ("get", "/agents"),
        ("get", "/agents/{agent}/capabilities"),
        ("post", "/agents/{agent}/run"),
        ("post", "/agents/{agent}/connect"),
        ("get", "/threads"),
        ("post", "/threads"),
        ("get", "/threads/{thread_id}"),
        ("patch", "/threads/{thread_id}"),
        ("delete", "/threads/{thread_id}"),
        ("post", "/threads/{thread_id}/fork"),
        ("post", "/threads/{thread_id}/entries"),
        ("get", "/threads/{thread_id}/messages"),
        ("get", "/threads/{thread_id}/state"),
        ("get", "/threads/{thread_id}/transcript"),
        ("get", "/threads/{thread_id}/runs"),
        ("post", "/threads/{thread_id}/runs"),
        ("get", "/threads/{thread_id}/runs/{run_id}"),
        ("get", "/threads/{thread_id}/runs/{run_id}/events"),
        ("get", "/threads/{thread_id}/stream"),
        ("post", "/threads/{thread_id}/runs/{run_id}/stop"),
        ("get", "/healthz"),
    }
