"""What a client asks of the server itself, in `forwardedProps.conversation`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import JsonValue

from app.conversation.ids import check_id
from app.errors import InvalidInput

_FIELD = "forwardedProps/conversation"
PREVIOUS_RUN_FIELD = f"{_FIELD}/previousRunId"


@dataclass(frozen=True, slots=True)
class Options:
    """None where the client leaves it to the server. `previous_run_id` may also be `head` or `start`."""

    group_id: str | None = None
    parent_thread_id: str | None = None
    hidden: bool | None = None
    busy: Literal["reject"] | None = None
    on_disconnect: Literal["continue", "cancel"] | None = None
    previous_run_id: str | None = None


def read_options(forwarded: JsonValue) -> Options:
    """Reads and checks it. Members that are null or unknown count as absent, an empty group as the default
    one; InvalidInput names the member whose value is wrong or is not supported yet."""
    given = forwarded.get("conversation") if isinstance(forwarded, dict) else None
    if given is None:
        return Options()
    if not isinstance(given, dict):
        raise InvalidInput("conversation must be an object.", field=_FIELD)
    return Options(
        group_id=_id(given, "groupId") if given.get("groupId") != "" else None,
        parent_thread_id=_id(given, "parentThreadId"),
        hidden=_flag(given, "hidden"),
        busy=cast(Literal["reject"] | None, _word(given, "busy", ("reject",))),
        on_disconnect=cast(
            Literal["continue", "cancel"] | None, _word(given, "onDisconnect", ("continue", "cancel"))
        ),
        previous_run_id=_id(given, "previousRunId"),
    )


def _id(given: Mapping[str, JsonValue], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string.", field=f"{_FIELD}/{name}")
    return check_id(value, f"{_FIELD}/{name}")


def _flag(given: Mapping[str, JsonValue], name: str) -> bool | None:
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise InvalidInput(f"{name} must be true or false.", field=f"{_FIELD}/{name}")


def _word(given: Mapping[str, JsonValue], name: str, words: tuple[str, ...]) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in words:
        raise InvalidInput(f"{name} takes {' or '.join(words)}.", field=f"{_FIELD}/{name}")
    return value
