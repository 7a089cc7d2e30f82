"""Histories of every kind: calls that wait for results, ids used twice, messages that users never see."""

from collections.abc import Sequence

from hypothesis import strategies as st

from app.agent.models.base import Model
from app.agent.pairing import paired
from app.agent.prompt import Prompt
from app.conversation.blocks import Text, ToolCall
from app.conversation.messages import (
    Injected,
    Message,
    Usage,
    assistant_message,
    tool_result_message,
    user_message,
)

_IDS = st.sampled_from(["a", "b", "c"])
_TEXTS = st.integers(0, 120).map(lambda length: "x" * length)
_CALLS = st.builds(ToolCall, id=_IDS, name=st.just("look"), arguments=st.just("{}"))
_USAGES = st.none() | st.integers(0, 300).map(lambda total: Usage(total_tokens=total))

HISTORIES: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(
        st.builds(user_message, _TEXTS),
        st.builds(user_message, _TEXTS, injected=st.sampled_from(Injected)),
        st.builds(assistant_message, _TEXTS, usage=_USAGES),
        st.builds(
            assistant_message,
            st.lists(st.one_of(_CALLS, st.builds(Text, text=_TEXTS)), max_size=3),
            usage=_USAGES,
        ),
        st.builds(tool_result_message, _IDS, st.just("look"), _TEXTS),
    ),
    max_size=16,
)


def shown_to_models(messages: Sequence[Message]) -> list[Message]:
    """The history with a result right behind every call."""
    return paired(messages)


async def never_asked(prompt: Prompt, model: Model | None) -> Message:
    raise AssertionError("no model was to be asked")
