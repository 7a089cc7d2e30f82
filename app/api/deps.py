"""What routes are given: the services of the process, and who is asking."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Path, Query, Request

from app.agent.context import Runnable
from app.clock import Clock
from app.conversation.ids import check_id
from app.errors import NotFound
from app.runs.manager import RunManager
from app.settings import Settings
from app.store.adapter import Store


@dataclass(frozen=True, slots=True)
class Services:
    """What the composition root made."""

    settings: Settings
    clock: Clock
    store: Store
    runs: RunManager
    agents: Mapping[str, Runnable]

    def agent(self, name: str) -> Runnable:
        """The agent of that name, or NotFound."""
        if name not in self.agents:
            raise NotFound(f"There is no agent {name[:200]!r}.", field="agent")
        return self.agents[name]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. Nothing in a body or a header of the request can change this."""

    namespace: str
    sender_id: str


async def services(request: Request) -> Services:
    return cast(Services, request.state.services)


async def principal() -> Principal:
    """Everyone is the same person until credentials are configured."""
    return Principal("default", "user")


async def _thread_id(thread_id: Annotated[str, Path(description="1 to 200 code points.")]) -> str:
    return check_id(thread_id, "thread_id")


async def _run_id(run_id: Annotated[str, Path(description="1 to 200 code points.")]) -> str:
    return check_id(run_id, "run_id")


# Dependencies are coroutines although they wait for nothing: a plain function would cost a thread each.
Serving = Annotated[Services, Depends(services)]
Caller = Annotated[Principal, Depends(principal)]
ThreadId = Annotated[str, Depends(_thread_id)]
RunId = Annotated[str, Depends(_run_id)]
Protocol = Annotated[str | None, Query(description="`0` for what 0.x clients accept.")]
