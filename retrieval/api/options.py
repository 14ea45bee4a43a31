"""What a path allows. The router's own answer names only the first handler that it met at a path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from litestar import Request, Response, route
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler


def options_handler(handlers: Iterable[HTTPRouteHandler]) -> HTTPRouteHandler:
    """Answers OPTIONS at every path of the handlers; register it before them, or the router adds its own."""
    allowed: dict[str, set[str]] = defaultdict(lambda: {HttpMethod.OPTIONS.value})
    paths: set[str] = set()
    for handler in handlers:
        paths |= handler.paths
        for path in handler.paths:
            allowed[path.replace(":str}", "}")] |= {str(method) for method in handler.http_methods}
    allow = {path: ", ".join(sorted(methods)) for path, methods in allowed.items()}

    @route(sorted(paths), http_method=HttpMethod.OPTIONS, status_code=204)
    async def options(request: Request[Any, Any, Any]) -> Response[None]:
        """The methods of the path, in the header Allow."""
        return Response(None, status_code=204, headers={"allow": allow[request.scope["path_template"]]})

    return options
