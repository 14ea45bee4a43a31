"""An OpenTelemetry collector on loopback: takes OTLP over HTTP, as protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.loopback import Reply, Request, answering


@dataclass
class Collector:
    """The requests received.

    Attributes:
        bodies: of all requests, as they came.
        is_down: every request is a 503.
    """

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    is_down: bool = False

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        """The bodies, decoded."""
        return [ExportTraceServiceRequest.FromString(body) for body in list(self.bodies)]

    @property
    def spans(self) -> dict[str, Span]:
        """The last span of each name."""
        resources = [resource for request in self.requests for resource in request.resource_spans]
        return {span.name: span for one in resources for scope in one.scope_spans for span in scope.spans}

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resource that sent each body."""
        return [attributes(one.resource) for request in self.requests for one in request.resource_spans]


def attributes(described: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {one.key: _value(one.value) for one in described.attributes}


def _value(given: AnyValue) -> Any:
    kind = given.WhichOneof("value")
    return [_value(one) for one in given.array_value.values] if kind == "array_value" else getattr(given, str(kind))


@contextmanager
def collecting() -> Iterator[Collector]:
    """A running collector."""
    collector = Collector()

    def answer(request: Request) -> Reply:
        if collector.is_down:
            return Reply(503, b"")
        collector.bodies.append(request.body)
        return Reply(200, b"")

    with answering(answer) as collector.url:
        yield collector
