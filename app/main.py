"""The composition root: builds every resource, opens it in the lifespan, passes it on."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypedDict

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import __version__
from app.agent.context import Runnable
from app.agent.loading import load_agents
from app.agent.models.providers import ProviderKeys, make_model
from app.agui.hydrate import WireRenderer
from app.agui.translate import Translator
from app.api import agents as agent_routes
from app.api import health, history, problems, runs, threads
from app.api.deps import Services
from app.api.door import Door
from app.api.page import page
from app.clock import Clock, SystemClock
from app.errors import StartupRefused
from app.runs.log_memory import LogShelf
from app.runs.manager import RunManager
from app.runs.recovery import settle_abandoned
from app.settings import Settings, read_settings
from app.store.opening import open_store

logger = logging.getLogger(__name__)

TICK_SECONDS = 5.0
EXPOSED_HEADERS = (
    "Location",
    "Content-Location",
    "Retry-After",
    "Verbatim-Ignored-Messages",
    "Verbatim-Dropped-Parts",
)
"""What a page of another origin may read of an answer."""


class LifespanState(TypedDict):
    services: Services


def create_app(
    settings: Settings | None = None,
    *,
    agents: Mapping[str, Runnable] | None = None,
    clock: Clock | None = None,
) -> FastAPI:
    """The application. Settings come from the environment if none are given; agents from the settings."""
    settings = settings or read_settings()
    clock = clock or SystemClock()
    serving = agents if agents is not None else _agents(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[LifespanState]:
        async with _services(settings, serving, clock) as services:
            yield {"services": services}

    app = FastAPI(title="Verbatim", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    problems.install(app)
    for router in (agent_routes.router, threads.router, history.router, runs.router, health.router):
        app.include_router(router)
    app.router.routes.append(page())
    app.add_middleware(PlainRefusal)
    app.add_middleware(Door, loopback_only=not settings.allow_unauthenticated, origins=settings.cors_origins)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Content-Type", "Last-Event-ID", "Authorization"],
            expose_headers=[
                "Location",
                "Content-Location",
                "Verbatim-Ignored-Messages",
                "Verbatim-Dropped-Parts",
                "Retry-After",
            ],
        )
    return app


class PlainRefusal:
    """ASGI middleware: a start that is refused says why in words, not in a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return

        held: list[Message] = []

        async def holding_failure(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                held.append(message)
            else:
                await send(message)

        try:
            await self._app(scope, receive, holding_failure)
        except StartupRefused as refusal:
            await send({"type": "lifespan.startup.failed", "message": refusal.public})
        except BaseException:
            for message in held:
                await send(message)
            raise


def _agents(settings: Settings) -> Mapping[str, Runnable]:
    def secret(value: object) -> str | None:
        return value.get_secret_value() if isinstance(value, SecretStr) else None

    keys = ProviderKeys(
        openai_api_key=secret(settings.openai_api_key),
        openai_base_url=settings.openai_base_url,
        anthropic_api_key=secret(settings.anthropic_api_key),
        anthropic_base_url=settings.anthropic_base_url,
    )
    return load_agents(settings.agents, make_model(settings.model, keys))


@asynccontextmanager
async def _services(
    settings: Settings, agents: Mapping[str, Runnable], clock: Clock
) -> AsyncGenerator[Services]:
    loop = asyncio.get_running_loop()
    store = await open_store(settings.database_url, settings.data_dir)
    renderer = WireRenderer()
    try:
        await settle_abandoned(store, renderer, clock)
        shelf = LogShelf(settings.log_retention_seconds, settings.log_max_bytes, loop.time)
        manager = RunManager(
            store=store,
            shelf=shelf,
            clock=clock,
            translator=lambda: Translator(clock).translate,
            renderer=renderer,
        )
        ticker = asyncio.create_task(_tick(shelf), name="ticker")
        try:
            yield Services(settings, clock, store, manager, agents)
        finally:
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
            await manager.drain()
    finally:
        await store.close()


async def _tick(shelf: LogShelf) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        shelf.tick()
