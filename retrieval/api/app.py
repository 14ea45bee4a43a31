"""The HTTP application: its routes, its start and its stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import cache, partial
from typing import Any

import msgspec
from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.enums import MediaType
from litestar.exceptions import ValidationException
from litestar.routes import HTTPRoute

from native.malloc import trim_heap
from retrieval.api.bulk import BulkController
from retrieval.api.console import ConsoleController
from retrieval.api.documents import DocumentsController
from retrieval.api.entities import EntitiesController
from retrieval.api.health import ServerController
from retrieval.api.jobs import JobsController
from retrieval.api.journal import JournalController
from retrieval.api.lifecycle import LifeCycleController
from retrieval.api.mcp import mcp_route, serving_tools
from retrieval.api.memories import MemoriesController
from retrieval.api.middleware import Gateway, logging_late_failures
from retrieval.api.namespaces import NamespacesController
from retrieval.api.openapi import CachedRenderer, StructSchemas, complete, config
from retrieval.api.openapi_page import page
from retrieval.api.otel import tracing_by
from retrieval.api.parameters import TypedRequest, check_request
from retrieval.api.problems import PROBLEMS, allow, bad_parameter, log_failure, logging_failures, unknown_profile
from retrieval.api.profiles import ProfilesController
from retrieval.api.search import SearchController
from retrieval.api.state import AppState
from retrieval.engine import Trivet
from retrieval.errors import UnknownProfile
from retrieval.settings import Settings
from retrieval.tasks import cancel

MAINTENANCE_INTERVAL_S = 5.0
TRIM_INTERVAL_S = 300.0
HEAP_INTERVAL_S = 30.0
SWITCH_INTERVAL_S = 0.0001

_CONTROLLERS = (
    SearchController,
    MemoriesController,
    BulkController,
    EntitiesController,
    DocumentsController,
    LifeCycleController,
    NamespacesController,
    JobsController,
    JournalController,
    ProfilesController,
    ServerController,
    mcp_route,
)


def create_app(settings: Settings, engine: Trivet | None = None, *, is_server: bool = True) -> Litestar:
    """An ASGI application for an engine that the caller closes, or else for its own, opened and closed with it.

    A server owns its process: it tunes the interpreter, also answers at `/mcp`, and is traced as `OTEL_*` configure.

    Raises:
        SettingsError: an `OTEL_*` variable cannot be used.
    """
    tracing = tracing_by(os.environ) if is_server else None
    api = AppState(settings=settings, tracing=tracing)

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        opening = nullcontext(engine) if engine is not None else Trivet.open(settings)
        exporting = nullcontext() if tracing is None else tracing.exporting()
        async with exporting, opening as opened, _serving(api, opened):
            if is_server:
                _tune_interpreter()
                for library in ("httpx", "mcp"):  # they log each request, with the names and ids in its path
                    logging.getLogger(library).setLevel(logging.WARNING)
                async with serving_tools(app, api):
                    yield
            else:
                yield

    schemas, with_key = StructSchemas(), settings.api_key is not None

    @cache
    def document() -> dict[str, Any]:
        made = app.openapi_schema.to_schema()
        complete(made, schemas, with_key=with_key, with_rate_limit=settings.rate_limit > 0)
        return made

    html = CachedRenderer(lambda: page(document()), path="/")
    json = CachedRenderer(lambda: msgspec.json.encode(document()), path="/openapi.json", media_type=MediaType.JSON)
    api.openapi = json.content
    app = Litestar(
        route_handlers=(*_CONTROLLERS, ConsoleController) if settings.console else _CONTROLLERS,
        lifespan=[lifespan],
        dependencies={"api": Provide(lambda: api, sync_to_thread=False)},
        before_request=check_request,
        request_class=TypedRequest,
        request_max_body_size=settings.max_body_bytes,
        exception_handlers={ValidationException: bad_parameter, UnknownProfile: unknown_profile},
        after_exception=[logging_failures(settings)],
        plugins=[PROBLEMS, schemas],
        openapi_config=config([html, json], settings.address, with_key=with_key),
        state=State({"api": api}),
        logging_config=None,
    )
    api.allowed = {route.path_format: allow(route.methods) for route in app.routes if isinstance(route, HTTPRoute)}
    app.asgi_handler = Gateway(api)(app.asgi_handler)
    if tracing is not None:
        app.asgi_handler = tracing(app.asgi_handler)
    if is_server:
        app.asgi_handler = logging_late_failures(app.asgi_handler, api)
    return app


@asynccontextmanager
async def _serving(api: AppState, engine: Trivet) -> AsyncIterator[None]:
    """Hand the engine to the handlers and maintain it for as long as the block lasts."""
    api.opened = engine
    secrets = api.settings.secrets
    beside = (
        # Loads what the first queries would otherwise wait for.
        asyncio.create_task(_logged(engine.warm, "warming", secrets)),
        asyncio.create_task(_repeat(engine.maintain, MAINTENANCE_INTERVAL_S, "maintenance", secrets)),
        asyncio.create_task(_repeat(engine.trim_changes, TRIM_INTERVAL_S, "trimming", secrets)),
        asyncio.create_task(_repeat(partial(asyncio.to_thread, trim_heap), HEAP_INTERVAL_S, "freeing memory", secrets)),
    )
    try:
        yield
    finally:
        await cancel(*beside)
        api.opened = None


def _tune_interpreter() -> None:
    """Tune garbage collection and thread switching for serving, and free the memory that startup used.

    Models, routes and modules live until the end; scanning them in collections costs a search a tenth of its time. A
    thread that embeds needs the GIL briefly before and after: by default it waits 5 ms, as long as a whole search.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    trim_heap()


async def _repeat(
    work: Callable[[], Awaitable[object]], interval_s: float, name: str, secrets: tuple[str, ...]
) -> None:
    """Repeat some work; a failure is logged unless the previous run had the same one."""
    failed = None
    while True:
        await asyncio.sleep(interval_s)
        failed = await _logged(work, name, secrets, known=failed)


async def _logged(
    work: Callable[[], Awaitable[object]], name: str, secrets: tuple[str, ...], *, known: str | None = None
) -> str | None:
    """Do some work; return a failure, and log it unless it is the `known` one."""
    try:
        await work()
    except Exception as exc:
        if (failure := repr(exc)) != known:
            log_failure(exc, name, secrets)
        return failure
    return None
