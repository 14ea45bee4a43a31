"""What the handlers of one application share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from litestar.di import NamedDependency
from litestar.params import SkipValidation
from litestar.types import ASGIApp

from retrieval.api.metrics import Metrics
from retrieval.engine import Trivet
from retrieval.errors import StoreUnavailable
from retrieval.settings import Settings
from retrieval.validation import SMALL_BYTES

if TYPE_CHECKING:
    from retrieval.api.tracing import Tracing

T = TypeVar("T")


@dataclass(kw_only=True, slots=True)
class AppState:
    """One application's engine, settings and counters.

    Attributes:
        opened: the engine; None before the start and after the stop.
        openapi: makes the OpenAPI document, as JSON.
        allowed: the methods of each path, as the header `Allow` has them.
        tracing: makes spans of requests; None if it is off.
        tools: answers requests below `/mcp`; None without the extra `mcp`.
    """

    settings: Settings
    tracing: Tracing | None = None
    metrics: Metrics = field(default_factory=Metrics)
    opened: Trivet | None = None
    openapi: Callable[[], bytes] = bytes
    allowed: Mapping[str, str] = field(default_factory=dict)
    tools: ASGIApp | None = None
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def engine(self) -> Trivet:
        """The running engine.

        Raises:
            StoreUnavailable: the application has not started yet, or has stopped.
        """
        if self.opened is None:
            raise StoreUnavailable("The engine is not running")
        return self.opened

    async def decoded(self, content: bytes, decode: Callable[[bytes], T]) -> T:
        """The decoded content; large content is decoded in a thread, one at a time, so that others need not wait."""
        if len(content) <= SMALL_BYTES:
            return decode(content)
        async with self._one_at_a_time:
            return await asyncio.to_thread(decode, content)


Api = NamedDependency[SkipValidation[AppState]]
"""How a handler gets the state."""
