"""Agents: which there are, what they do, and the AG-UI door to run one."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.agui.input import read_run_input
from app.api.deps import Caller, Serving
from app.api.door import body_of
from app.api.following import show_outcome, show_thread
from app.api.openapi import EVENT_STREAM, RUN_INPUT
from app.api.turns import take_request

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
    with nothing new is told how the thread stands and follows its live run, and nothing is stored. The same
    request once more follows the run that it became. 409 if the thread has a live run or waits for answers
    that the request does not give, or the run id is used for something else.
    """
    runnable = services.agent(agent)
    asked = read_run_input(body_of(request.scope))
    outcome = await take_request(services, principal, runnable, asked)
    return await show_outcome(services, principal, asked, outcome)


@router.post(
    "/agents/{agent}/connect",
    response_class=Response,
    responses=EVENT_STREAM,
    openapi_extra=RUN_INPUT,
)
async def connect_agent(request: Request, services: Serving, principal: Caller, agent: str) -> Response:
    """Takes an AG-UI RunAgentInput, of which the thread counts, and brings its client to the present: state
    and messages of the thread, known or not, and then the events of its live run until that ends. Nothing is
    stored."""
    services.agent(agent)
    return await show_thread(services, principal, read_run_input(body_of(request.scope)))
