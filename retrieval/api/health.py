"""Whether the server lives and is ready, which version it is, and its counters."""

from __future__ import annotations

import platform
from typing import Any

from litestar import Request, Response, get
from msgspec import Struct

from retrieval.api.operation import Operation
from retrieval.api.problems import NotReady
from retrieval.api.state import engine_of, shared_of
from retrieval.version import installed_version

PROMETHEUS_TYPE = "text/plain; version=0.0.4"


class Liveness(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: str


class Readiness(Struct, frozen=True, kw_only=True):
    """All parts that a search needs are there."""

    status: str
    checks: dict[str, bool]


class Version(Struct, frozen=True, kw_only=True):
    """Which Trivet this is."""

    name: str
    version: str
    api: str
    python: str


_LIVE = Operation(
    id="live",
    tag="server",
    summary="Liveness",
    description="Answers as long as the process does; it asks nothing of the database.",
    response=Liveness,
    answer={"status": "live"},
    is_open=True,
)
_READY = Operation(
    id="ready",
    tag="server",
    summary="Readiness",
    description="200 when the database is reachable, its migrations are applied and the models are loaded; "
    "else 503, whose `errors` name what is missing.",
    response=Readiness,
    answer={"status": "ready", "checks": {"database": True, "migrations": True, "models": True}},
    errors=(503,),
    is_open=True,
)
_VERSION = Operation(
    id="version", tag="server", summary="Version", response=Version, is_open=True,
    answer={"name": "trivet", "version": "0.1.0", "api": "v1", "python": "3.11.9"},
)  # fmt: skip
_METRICS = Operation(
    id="metrics",
    tag="server",
    summary="Metrics",
    description="Prometheus text. With several workers each scrape reaches one of them.",
    response=str,
    response_type=PROMETHEUS_TYPE,
)


@get("/health/live", opt=_LIVE.as_opt)
async def live() -> Liveness:
    """The process answers."""
    return Liveness(status="live")


@get("/health/ready", opt=_READY.as_opt)
async def ready(request: Request[Any, Any, Any]) -> Readiness:
    """All parts are there, or a 503 that names those that are not."""
    checks = await engine_of(request).readiness()
    missing = [part for part, is_ready in checks.items() if not is_ready]
    if missing:
        raise NotReady(missing)
    return Readiness(status="ready", checks=checks)


@get("/version", opt=_VERSION.as_opt)
async def show_version() -> Version:
    """Name, version and Python."""
    return Version(name="trivet", version=installed_version(), api="v1", python=platform.python_version())


@get("/metrics", opt=_METRICS.as_opt)
async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The application's registry."""
    return Response(shared_of(request).metrics.exposition(), media_type=PROMETHEUS_TYPE)
