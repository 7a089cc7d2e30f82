"""The repair of OpenAI Responses streams."""

import json
import logging
from collections.abc import Iterator
from typing import Any, cast, get_args

from openai.types.responses import ResponseStreamEvent

from app.agent.models.sse import CUT

_log = logging.getLogger(__name__)

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


def _known_kinds() -> frozenset[str]:
    union = get_args(ResponseStreamEvent)[0]
    return frozenset(
        kind for event in get_args(union) for kind in get_args(event.model_fields["type"].annotation)
    )


class ResponsesRepair:
    """Leaves out what is no event that the library knows, such as keep-alives. A stream that stops without
    one of its ends ends in an error."""

    def __init__(self) -> None:
        self._known = _known_kinds()
        self._over = False

    def take(self, name: str, data: str) -> Iterator[tuple[str, str]]:
        event = None if self._over else _read(data)
        if event is None:
            return
        kind = event.get("type", name)
        if kind not in self._known:
            _log.debug("skipped an event of the kind %r in the model's answer", kind)
            return
        self._over = kind in _ENDS
        yield str(kind), json.dumps({"type": kind, **event})

    def end(self) -> Iterator[tuple[str, str]]:
        if not self._over:
            self._over = True
            error = {"type": "error", "code": CUT, "message": "the stream was cut", "param": None}
            yield "error", json.dumps({**error, "sequence_number": 0})


def _read(data: str) -> dict[str, Any] | None:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None
