"""Liveness, readiness, version, state and metrics of the server."""

from __future__ import annotations

import platform
from typing import Any

from litestar import Controller, Response, get
from msgspec import Struct

from retrieval.api.problems import NotReady, problems
from retrieval.api.state import Api
from retrieval.api.tokens import METRICS, READS
from retrieval.errors import StoreUnavailable
from retrieval.installation import installed_version
from retrieval.types.state import ServerState

PROMETHEUS_TYPE = "text/plain; version=0.0.4"


class Liveness(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: str


class Readiness(Struct, frozen=True, kw_only=True):
    """All parts that a search needs are ready."""

    status: str
    checks: dict[str, bool]


class Version(Struct, frozen=True, kw_only=True):
    """The version of the server."""

    name: str
    version: str
    api: str
    python: str


class ServerController(Controller):
    """The server itself, for probes and scrapers."""

    tags = ("server",)

    @get("/health/live", responses=problems(503))
    async def live(self, api: Api) -> Liveness:
        """Liveness.

        200 as long as restarting the process would not help: an external database is not checked here but in
        `/health/ready`. 503 once the embedded database has stopped and several attempts to restart it have failed;
        attempts continue, and it is 200 again once one succeeds.
        """
        engine = api.opened
        if engine is not None and engine.postgres is not None and engine.postgres.failure is not None:
            raise StoreUnavailable("the embedded database has ended and cannot be started again; the log says why")
        return Liveness(status="live")

    @get("/health/ready", responses=problems(503))
    async def ready(self, api: Api) -> Readiness:
        """Readiness.

        200 when the database is reachable, its migrations are applied, the models are loaded, the server has the
        embedder of every namespace and the largest namespaces are in memory; else 503, with what is missing in
        `errors`. Embedding providers are not contacted. While a namespace is loading, SQL answers its searches, and
        `degraded` names what it cannot answer.
        """
        checks = await api.engine.readiness()
        missing = [part for part, is_ready in checks.items() if not is_ready]
        if missing:
            raise NotReady(missing)
        return Readiness(status="ready", checks=checks)

    @get("/version")
    async def version(self) -> Version:
        """Version."""
        return Version(name="trivet", version=installed_version(), api="v1", python=platform.python_version())

    @get("/v1/state")
    async def state(self, api: Api) -> ServerState:
        """State of the server.

        The findings of `trivet doctor`, the in-memory indexes of the process that answers, and how many memories of
        each namespace await compaction.
        """
        return await api.engine.state()

    @get("/metrics", media_type=PROMETHEUS_TYPE, opt={METRICS: True})
    async def metrics(self, api: Api) -> Response[str]:
        """Metrics.

        Prometheus text, for all workers together.
        """
        return Response(api.metrics.exposition().decode(), media_type=PROMETHEUS_TYPE)

    @get("/openapi.json", media_type="application/json", opt={READS: True})
    async def openapi(self, api: Api) -> Response[dict[str, Any]]:
        """OpenAPI document.

        OpenAPI 3.1.
        """
        return Response(api.openapi(), media_type="application/json")  # type: ignore[arg-type]  # encoded already
