"""What the handlers of one application share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from retrieval.errors import StoreUnavailable

if TYPE_CHECKING:
    from litestar import Request

    from retrieval.api.metrics import Metrics
    from retrieval.engine import Trivet
    from retrieval.settings import Settings


@dataclass(kw_only=True, slots=True)
class Shared:
    """One application's engine, settings and counters.

    Attributes:
        settings: how the server runs.
        metrics: the application's own registry.
        engine: None before the start and after the stop.
        openapi: the OpenAPI document as JSON.
        docs: the API pages as HTML.
    """

    settings: Settings
    metrics: Metrics
    engine: Trivet | None = None
    openapi: bytes = b""
    docs: bytes = b""


def shared_of(request: Request[Any, Any, Any]) -> Shared:
    """The shared state of the application that got this request."""
    return cast("Shared", request.app.state.shared)


def engine_of(request: Request[Any, Any, Any]) -> Trivet:
    """The running engine; raises as `running` does."""
    return running(shared_of(request))


def running(shared: Shared) -> Trivet:
    """The running engine.

    Raises:
        StoreUnavailable: the application has not started yet, or has stopped.
    """
    if shared.engine is None:
        raise StoreUnavailable("The engine is not running")
    return shared.engine
