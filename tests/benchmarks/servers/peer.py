"""The peer: agent-framework-ag-ui with a fake model. Run with the Python of an environment that has it."""

import sys
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Any

import uvicorn
from agent_framework import Agent, BaseChatClient, ChatResponseUpdate, Content
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from fastapi import FastAPI

DELTAS = 200
DELTA = "word and "


class FakeClient(BaseChatClient):
    """Streams the same text deltas, without waiting."""

    def _inner_get_response(
        self, *, messages: Sequence[Any], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        async def updates() -> AsyncIterable[ChatResponseUpdate]:
            for _ in range(DELTAS):
                yield ChatResponseUpdate(contents=[Content.from_text(DELTA)], role="assistant")

        return self._build_response_stream(updates())


app = FastAPI()
agent = Agent(client=FakeClient(), name="assistant")
add_agent_framework_fastapi_endpoint(app, agent, "/agents/assistant/run", single_user=True)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
