"""How far a tool is, for whoever looks on. AG-UI has no event for it; it travels as a CUSTOM one."""

from app.agent.events import ToolProgress
from app.agui.brackets import Brackets, Members

NAME = "tool_progress"


def progress_frame(event: ToolProgress, brackets: Brackets) -> bytes:
    """CUSTOM `tool_progress` with `{toolCallId, toolName, sequence, progress, total?, message?}`."""
    value: Members = {
        "toolCallId": event.call_id,
        "toolName": event.tool,
        "sequence": event.sequence,
        "progress": event.progress,
    }
    if event.total is not None:
        value["total"] = event.total
    if event.message:
        value["message"] = event.message
    return brackets.event("CUSTOM", {"name": NAME, "value": value})
