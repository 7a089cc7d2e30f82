"""The shared state on the wire, and the snapshot of a thread that a run tells before it pauses."""

import orjson
from ag_ui.core import StateDeltaEvent
from pydantic import ValidationError

from app.agent.events import Snapshot, StateChanged
from app.agui.brackets import Brackets
from app.agui.variants import variants
from app.frames import Frame


def changed_frame(event: StateChanged, brackets: Brackets) -> bytes:
    """STATE_DELTA; the whole state where the operations are none that the protocol can carry, such as a
    pointer that does not begin with a slash, of which clients die."""
    try:
        StateDeltaEvent.model_validate({"type": "STATE_DELTA", "delta": event.patch})
    except ValidationError:
        return state_frame(event.state, brackets)
    return brackets.event("STATE_DELTA", {"delta": event.patch})


def state_frame(state: object, brackets: Brackets) -> bytes:
    """STATE_SNAPSHOT. A thread without state has an empty one."""
    return brackets.event("STATE_SNAPSHOT", {"snapshot": {} if state is None else state})


def snapshot_frames(event: Snapshot, brackets: Brackets) -> list[Frame]:
    """STATE_SNAPSHOT and MESSAGES_SNAPSHOT; the messages are ready JSON and go in as they are."""
    messages = orjson.Fragment(event.messages)
    legacy = messages if event.messages == event.legacy_messages else orjson.Fragment(event.legacy_messages)
    return [
        state_frame(event.state, brackets),
        variants("MESSAGES_SNAPSHOT", {"messages": messages}, {"messages": legacy}, brackets),
    ]
