"""Traces: a span for each request, by OpenTelemetry. Imports the packages of the extra `otel`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPMethod
from threading import Thread

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from retrieval.api.middleware import UNROUTED, encoded_path, is_open, route_of
from retrieval.installation import installed_version
from retrieval.types.search import ContextResponse, SearchResponse

STOP_S = 5.0
"""How long a stopping server waits for a collector to accept the last spans."""


class Tracing(ASGIMiddleware):
    """Wraps the gateway: each request, except probes, is a span in its caller's trace.

    It is named by method and route. Its attributes are those of OpenTelemetry's HTTP conventions and what `describe`
    adds. They never contain the text of a query or a memory.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, *, to_collector: bool, to_console: bool) -> None:
        own = Resource.create({"service.name": "trivet", "service.version": installed_version()})
        self._provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
        self._tracer = self._provider.get_tracer("trivet")
        self._exporters: list[SpanExporter] = []
        if to_collector:
            self._exporters.append(OTLPSpanExporter())
        if to_console:
            self._exporters.append(ConsoleSpanExporter())

    @asynccontextmanager
    async def exporting(self) -> AsyncIterator[None]:
        """Export spans within a block, in threads, which must belong to this process and not to its parent.

        Spans that an unreachable collector does not accept are dropped, with one log line per batch.
        """
        # They warn before each retry, and about headers, which they quote.
        for part in ("exporter", "baggage", "trace"):
            logging.getLogger(f"opentelemetry.{part}").setLevel(logging.ERROR)
        for exporter in self._exporters:
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        try:
            yield
        finally:
            stopping = Thread(target=self._provider.shutdown, daemon=True)  # it may take half a minute
            stopping.start()
            await asyncio.to_thread(stopping.join, STOP_S)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Handle one request."""
        assert scope["type"] == ScopeType.HTTP  # noqa: S101  # for mypy
        path = encoded_path(scope)
        if is_open(path) or path == "/metrics":
            await next_app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        known = scope["method"] in HTTPMethod.__members__
        with self._tracer.start_as_current_span(
            scope["method"] if known else "HTTP",
            extract(headers, Context()),
            SpanKind.SERVER,
            {
                "http.request.method": scope["method"] if known else "_OTHER",
                "url.scheme": scope["scheme"],
                "url.path": path,
            },
            record_exception=False,  # messages of errors may quote texts
            set_status_on_exception=False,
        ) as span:
            try:
                await next_app(scope, receive, send)
            finally:
                route, status = route_of(scope), scope["state"]["status"]
                if route != UNROUTED:
                    span.update_name(f"{scope['method']} {route}")
                    span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", status)
                span.set_attribute("trivet.request_id", scope["state"]["request_id"])
                if status >= 500:
                    span.set_attribute("error.type", str(status))
                    span.set_status(StatusCode.ERROR)

    def describe(self, answer: SearchResponse | ContextResponse) -> None:
        """Add to the request's span how its answer came about."""
        intent = {} if answer.intent is None else {"trivet.intent": answer.intent.label}
        timings = {f"trivet.timings_ms.{stage}": taken for stage, taken in answer.timings_ms.items()}
        trace.get_current_span().set_attributes(
            {
                "trivet.search_id": answer.search_id,
                "trivet.profile": answer.profile,
                "trivet.degraded": [one.leg for one in answer.degraded],
                **intent,
                **timings,
            }
        )
