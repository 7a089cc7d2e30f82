"""The shared state of a thread while a run is under way."""

import copy
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from jsonpatch import (  # pyright: ignore[reportMissingTypeStubs]
    JsonPatch,
    JsonPatchException,
    JsonPointerException,
)
from pydantic import JsonValue
from pydantic_core import to_json

from app.agent.scrub import plain_json

LARGEST_STATE = 1024 * 1024
"""Bytes of the state as JSON: every client of the thread is sent all of it."""

_POINTER = re.compile(r"(/([^/~]|~[01])*)*")
Patch = Sequence[dict[str, JsonValue]]


class PatchRefused(Exception):
    """The operations cannot be applied; the message says why."""


class SharedState:
    """The state and its changes, one after the other. Safe to use from any thread.

    `changed` is told of each change while nobody else can make one, so that it hears them in their order.
    """

    def __init__(self, value: JsonValue, changed: Callable[[Patch, JsonValue], None]) -> None:
        self._value: JsonValue = {} if value is None else copy.deepcopy(value)
        self._changed = changed
        self._lock = threading.Lock()

    def read(self) -> JsonValue:
        """A copy."""
        with self._lock:
            return copy.deepcopy(self._value)

    def patch(self, operations: Sequence[Mapping[str, JsonValue]]) -> JsonValue:
        """Applies operations of RFC 6902, all or none, and gives a copy of the result. PatchRefused."""
        patch = _checked(operations)
        with self._lock:
            value = _applied(self._value, patch)
            if patch:
                self._value = value
                self._changed(patch, copy.deepcopy(value))
            return copy.deepcopy(value)


def _checked(operations: object) -> list[dict[str, JsonValue]]:
    """A copy that every store and wire can carry. A pointer is empty or begins with a slash (RFC 6901)."""
    if not isinstance(operations, Sequence) or isinstance(operations, str | bytes):
        raise PatchRefused("a patch is a list of operations")
    checked: list[dict[str, JsonValue]] = []
    for operation in cast(Sequence[object], operations):
        if not isinstance(operation, Mapping):
            raise PatchRefused("an operation is an object")
        try:
            clean = cast(dict[str, JsonValue], plain_json(dict(cast(Mapping[str, Any], operation))))
        except ValueError as error:
            raise PatchRefused("an operation holds what JSON cannot hold") from error
        for name in ("path", "from"):
            if name in clean and not _is_pointer(clean[name]):
                raise PatchRefused(f"{name} is no JSON pointer")
        checked.append(clean)
    return checked


def _is_pointer(value: JsonValue) -> bool:
    return isinstance(value, str) and _POINTER.fullmatch(value) is not None


def _applied(value: JsonValue, patch: Patch) -> JsonValue:
    try:
        result = cast(JsonValue, JsonPatch(patch).apply(value))  # pyright: ignore[reportUnknownMemberType]
    except (JsonPatchException, JsonPointerException) as error:
        raise PatchRefused(f"the patch does not fit the state: {type(error).__name__}") from error
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise PatchRefused("the patch does not fit the state") from error
    if len(to_json(result, inf_nan_mode="null")) > LARGEST_STATE:
        raise PatchRefused(f"the state would have more than {LARGEST_STATE} bytes")
    return result
