"""The OpenAPI document and the API pages, both built once at the start."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get

from retrieval.api.operation import Operation
from retrieval.api.state import shared_of

_OPENAPI = Operation(
    id="openapi", tag="server", summary="OpenAPI document", description="OpenAPI 3.1.", response=dict[str, Any]
)
_DOCS = Operation(
    id="docs",
    tag="server",
    summary="API pages",
    description="This page; it loads nothing from elsewhere.",
    response=str,
    response_type="text/html",
)
_POLICY = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "x-content-type-options": "nosniff",
}


@get("/openapi.json", opt=_OPENAPI.as_opt)
async def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The document."""
    return Response(shared_of(request).openapi, media_type="application/json")


@get("/docs", opt=_DOCS.as_opt)
async def docs(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The pages."""
    return Response(shared_of(request).docs, media_type=_DOCS.response_type, headers=_POLICY)
