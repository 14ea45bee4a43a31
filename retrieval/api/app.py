"""The HTTP application: its routes, its start and its stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from litestar import Litestar
from litestar.datastructures import State

from retrieval.api import (
    bulk,
    classify,
    documents,
    feedback,
    health,
    memories,
    namespaces,
    openapi,
    profiles,
    queries,
    search,
)
from retrieval.api.docs_page import render
from retrieval.api.gateway import Gateway
from retrieval.api.metrics import Metrics
from retrieval.api.options import options_handler
from retrieval.api.problems import describe, exception_handler, log_failure, secrets_of
from retrieval.api.state import Shared
from retrieval.engine import Trivet
from retrieval.heap import give_back, keep_large_apart
from retrieval.settings import Settings

logger = logging.getLogger(__name__)

MAINTENANCE_INTERVAL_S = 5.0
SWITCH_INTERVAL_S = 0.0001

_HANDLERS = (
    search.search,
    search.context,
    classify.classify,
    memories.add_memories,
    bulk.bulk_add_memories,
    memories.list_memories,
    memories.get_memory,
    memories.patch_memory,
    memories.delete_memory,
    memories.delete_memories,
    feedback.add_feedback,
    feedback.list_feedback,
    feedback.delete_feedback,
    queries.list_queries,
    queries.delete_queries,
    namespaces.list_namespaces,
    namespaces.put_namespace,
    namespaces.get_namespace,
    namespaces.delete_namespace,
    profiles.list_profiles,
    profiles.get_profile,
    profiles.put_profile,
    profiles.promote_profile,
    profiles.rollback_profile,
    profiles.get_profile_shadow,
    profiles.put_profile_shadow,
    profiles.delete_profile_shadow,
    health.live,
    health.ready,
    health.show_version,
    health.metrics,
    documents.openapi,
    documents.docs,
)


def create_app(settings: Settings, engine: Trivet | None = None) -> Litestar:
    """An ASGI application.

    Args:
        settings: how it runs.
        engine: one that runs already and that the caller closes; None opens one at the start of the
            application and closes it at its end.
    """
    shared = Shared(settings=settings, metrics=Metrics())

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncIterator[None]:
        if engine is not None:
            async with _serving(shared, engine):
                yield
        else:
            async with Trivet.open(settings) as opened, _serving(shared, opened):
                yield

    app = Litestar(
        route_handlers=[options_handler(_HANDLERS), *_HANDLERS],
        lifespan=[lifespan],
        exception_handlers={Exception: exception_handler(settings)},
        request_max_body_size=settings.max_body_bytes,
        state=State({"shared": shared}),
        openapi_config=None,
        logging_config=None,
    )
    found = openapi.endpoints(_HANDLERS)
    url = f"http://{settings.host}:{settings.port}"
    document = openapi.build(found, server_url=url, with_key=settings.api_key is not None)
    shared.openapi = msgspec.json.encode(document)
    shared.docs = render(document).encode()
    app.asgi_handler = Gateway(app.asgi_handler, shared)
    return app


@asynccontextmanager
async def _serving(shared: Shared, engine: Trivet) -> AsyncIterator[None]:
    """Hand the engine to the handlers and maintain it for as long as the block lasts."""
    shared.engine = engine
    shared.metrics.watch_embedding_cache(lambda: (engine.embedder.hits, engine.embedder.misses))
    beside = [asyncio.create_task(work(engine, secrets_of(shared.settings))) for work in (_warm, _maintain)]
    _settle()
    try:
        yield
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        shared.engine = None


def _settle() -> None:
    """Set the interpreter to answering.

    Models, routes and modules stay until the end; walking through them again and again costs a search a tenth of its
    time. And a thread that embeds or compares vectors needs the interpreter for an instant before and after: by
    default it would be given that after five milliseconds, when the search is over.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    keep_large_apart()
    give_back()


async def _warm(engine: Trivet, secrets: tuple[str, ...]) -> None:
    """Read what first queries would wait for; a failure is logged, and they read it themselves."""
    try:
        await engine.warm()
    except Exception as exc:
        log_failure(exc, describe(exc).status, "warming", secrets)


async def _maintain(engine: Trivet, secrets: tuple[str, ...]) -> None:
    """Compact what needs it, again and again; a failed pass is logged and the next one tries anew."""
    while True:
        await asyncio.sleep(MAINTENANCE_INTERVAL_S)
        try:
            await engine.maintain()
        except Exception as exc:
            log_failure(exc, describe(exc).status, "maintenance", secrets)
