"""The composition root: builds every resource, opens it in the lifespan, passes it on."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import TypedDict

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.middleware.cors import CORSMiddleware

from app import __version__
from app.agent.context import Runnable
from app.agent.loading import check_agents, load_agents
from app.agent.models.providers import ProviderKeys, close_model, make_model
from app.agui.hydrate import WireRenderer, hydrate
from app.agui.translate import Translator
from app.api import agents as agent_routes
from app.api import health, history, problems, runs, threads
from app.api.deps import Services
from app.api.door import Door
from app.api.openapi import PROBLEMS, describe
from app.api.page import page
from app.api.refusal import PlainRefusal
from app.clock import Clock, SystemClock
from app.errors import StartupRefused, StorageFailed
from app.runs.log_memory import LogShelf
from app.runs.manager import RunManager
from app.runs.recovery import settle_abandoned, settle_cut
from app.settings import Settings, read_settings
from app.store.adapter import ConversationStore, Store
from app.store.foreign import ForeignStore
from app.store.opening import open_store

TICK_SECONDS = 5.0
EXPOSED_HEADERS = (
    "Location",
    "Content-Location",
    "Retry-After",
    "Verbatim-Ignored-Messages",
    "Verbatim-Dropped-Parts",
    "Verbatim-Ignored-Resume",
    "Verbatim-Previous-Run",
)
"""What a page of another origin may read of an answer."""


class LifespanState(TypedDict):
    services: Services


def create_app(
    settings: Settings | None = None,
    *,
    agents: Mapping[str, Runnable] | None = None,
    clock: Clock | None = None,
    store: ConversationStore | None = None,
) -> FastAPI:
    """The application. Settings come from the environment if none are given; agents from the settings.

    A `store` takes the place of the database. It stays open: whoever made it closes it.
    """
    settings = settings or read_settings()
    clock = clock or SystemClock()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[LifespanState]:
        async with _services(settings, agents, clock, store) as services:
            yield {"services": services}

    app = FastAPI(title="Verbatim", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    problems.install(app)
    for router in (agent_routes.router, threads.router, history.router, runs.router, health.router):
        app.include_router(router, responses=PROBLEMS)
    app.router.routes.extend(page())
    app.openapi = partial(describe, app)
    app.add_middleware(PlainRefusal)
    app.add_middleware(Door, loopback_only=not settings.allow_unauthenticated, origins=settings.cors_origins)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Content-Type", "Last-Event-ID", "Authorization"],
            expose_headers=EXPOSED_HEADERS,
        )
    return app


@asynccontextmanager
async def _services(
    settings: Settings,
    given: Mapping[str, Runnable] | None,
    clock: Clock,
    storage: ConversationStore | None,
) -> AsyncGenerator[Services]:
    """Opens everything, in an order in which what is refused is refused before anything is touched."""
    async with AsyncExitStack() as stack:
        agents = check_agents(given) if given is not None else _agents(settings, stack)
        renderer = WireRenderer()
        store = await _store(settings, storage, renderer, clock, stack)
        await _settle(store, renderer, clock)
        shelf = LogShelf(settings.log_retention_seconds, settings.log_max_bytes, monotonic)
        manager = RunManager(
            store=store,
            shelf=shelf,
            clock=clock,
            translator=lambda: Translator(clock).translate,
            renderer=renderer,
            hydrate=hydrate,
        )
        stack.push_async_callback(manager.drain)
        await stack.enter_async_context(_ticking(shelf))
        yield Services(settings, clock, store, manager, agents)


async def _store(
    settings: Settings,
    given: ConversationStore | None,
    renderer: WireRenderer,
    clock: Clock,
    stack: AsyncExitStack,
) -> Store:
    """The store of the settings, closed at the end, or what makes one of somebody's own."""
    if given is not None:
        return ForeignStore(given, lambda store, ns, run: settle_cut(store, renderer, clock, ns, run))
    store = await open_store(settings.database_url, settings.data_dir)
    stack.push_async_callback(store.close)
    return store


async def _settle(store: Store, renderer: WireRenderer, clock: Clock) -> None:
    try:
        await settle_abandoned(store, renderer, clock)
    except StorageFailed as error:
        raise StartupRefused(
            "Runs that the last stop cut could not be ended, for the database refuses to write. "
            "See that it can (free space, permissions) and start again."
        ) from error


def _agents(settings: Settings, stack: AsyncExitStack) -> Mapping[str, Runnable]:
    keys = ProviderKeys(
        openai_api_key=_secret(settings.openai_api_key),
        openai_base_url=settings.openai_base_url,
        anthropic_api_key=_secret(settings.anthropic_api_key),
        anthropic_base_url=settings.anthropic_base_url,
    )
    model = make_model(settings.model, keys)
    stack.push_async_callback(close_model, model)
    return load_agents(settings.agents, model, settings.instructions)


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


@asynccontextmanager
async def _ticking(shelf: LogShelf) -> AsyncGenerator[None]:
    """Lets silent streams send their keep-alive, and old logs go."""
    ticker = asyncio.create_task(_tick(shelf), name="ticker")
    try:
        yield
    finally:
        ticker.cancel()
        with suppress(asyncio.CancelledError):
            await ticker


async def _tick(shelf: LogShelf) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        shelf.tick()
