"""Agents: which there are, what they do, and the AG-UI door to run one."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.agui.input import read_run_input
from app.api.deps import Caller, Serving
from app.api.door import body_of
from app.api.following import follow_run, show_standing
from app.api.openapi import EVENT_STREAM, RUN_INPUT
from app.api.turns import Standing, run_headers, start_turn

router = APIRouter(tags=["agents"])


@router.get("/agents")
async def list_agents(services: Serving) -> dict[str, Any]:
    """The agents of this server, the first being the default."""
    return {
        "agents": [
            {"name": agent.name, "description": agent.description} for agent in services.agents.values()
        ]
    }


@router.get("/agents/{agent}/capabilities")
async def read_capabilities(services: Serving, agent: str) -> dict[str, Any]:
    """What the agent really does, in the shape of AG-UI's AgentCapabilities; the rest is undeclared."""
    return dict(services.agent(agent).capabilities())


@router.post(
    "/agents/{agent}/run",
    response_class=Response,
    responses=EVENT_STREAM,
    openapi_extra=RUN_INPUT,
)
async def run_agent(request: Request, services: Serving, principal: Caller, agent: str) -> Response:
    """Takes an AG-UI RunAgentInput and streams the run's events.

    The thread is made if it is new. What is stored already is never rewritten by the request. Its list says
    where it goes on: the header `Verbatim-Previous-Run` names the run, percent-encoded. What is not taken is
    counted in `Verbatim-Ignored-Messages`, `Verbatim-Dropped-Parts` and `Verbatim-Ignored-Resume`. A list
    with nothing new is told how the thread stands, and nothing is stored. 409 if the thread has a live run or
    waits for answers that the request does not give, or the run id is used.
    """
    runnable = services.agent(agent)
    asked = read_run_input(body_of(request.scope))
    started = await start_turn(services, principal, runnable, asked)
    if isinstance(started, Standing):
        return await show_standing(services, principal, asked, started)
    return follow_run(
        services,
        principal,
        started.live,
        legacy=asked.legacy,
        on_disconnect=asked.options.on_disconnect,
        headers=run_headers(started),
    )
