"""What happens to every HTTP request before it is routed: request id, timing, host, key, path."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import secrets
import sys
import time
from typing import Any
from urllib.parse import quote

from litestar import Request
from litestar.enums import ScopeType
from litestar.exceptions import LitestarException
from litestar.middleware import ASGIMiddleware
from litestar.plugins.problem_details import ProblemDetailsException
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from retrieval.api.hosts import HostCheck
from retrieval.api.problems import log_failure, problem
from retrieval.api.rate_limit import RateLimit
from retrieval.api.state import AppState
from retrieval.api.tokens import token_of
from retrieval.errors import InvalidInput, TrivetError

access_log = logging.getLogger("retrieval.api.access")

UNROUTED, OTHER = "unmatched", "other"
"""Labels of requests that match no route, so that made-up paths and methods cannot fill the registry."""

MOUNT = "/mcp"
"""The route of the one mount, which has no template."""

_REQUEST_ID = re.compile(rb"[\w.:\-]{1,128}", re.ASCII)
_LIKE_A_ROUTE = re.compile("/memories/(bulk|delete|update)(?=/|$)")


class Gateway(ASGIMiddleware):
    """Wraps the router.

    Gives each response an `X-Request-Id` (the caller's if it sent a plain one), refuses requests to other hosts, from
    other origins, above the rate limit or without the key, keeps the path percent-encoded for the router, and records
    metrics.
    """

    scopes = (ScopeType.HTTP,)

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._hosts = HostCheck(state.settings)
        self._rate = RateLimit(state.settings.rate_limit) if state.settings.rate_limit else None

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Handle one request."""
        assert scope["type"] == ScopeType.HTTP  # noqa: S101  # for mypy
        started = time.perf_counter()
        request_id = request_id_of(scope)
        scope["state"]["request_id"] = request_id.decode()
        if scope["method"] == "HEAD" and not scope["path"].lstrip("/").startswith(MOUNT[1:]):  # a GET there never ends
            scope = {**scope, "method": "GET"}  # uvicorn leaves out the body
        scope["path"] = encoded_path(scope)
        status: int | None = None

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        async def refuse(refusal: ProblemDetailsException) -> None:
            request = Request[None, None, Any](scope, receive, send_with_id)
            await refusal.to_response(request).to_asgi_response(app=None, request=request)(scope, receive, send_with_id)

        try:
            refusal = self._hosts.refusal(scope) or self._too_many(scope) or self._unauthorized(scope)
            if refusal is None:
                await next_app(scope, receive, send_with_id)
            else:
                await refuse(refusal)
        except asyncio.CancelledError:
            if status is None:  # the server stops before this is done
                await refuse(problem(503, "The server is being stopped."))
            raise
        finally:
            seconds, told = time.perf_counter() - started, status or 500
            scope["state"]["status"] = told
            route = route_of(scope)
            method = OTHER if route == UNROUTED else scope["method"]
            self._state.metrics.observe_request(method, route, told, seconds)
            if (engine := self._state.opened) is not None:  # whichever request embedded queries, and even if it failed
                self._state.metrics.observe_cache(hits=engine.embedders.hits, misses=engine.embedders.misses)
            if access_log.isEnabledFor(logging.DEBUG):
                access_log.debug("%s %s %d %.2f ms", scope["method"], route, told, seconds * 1000.0)

    def _too_many(self, scope: HTTPScope) -> ProblemDetailsException | None:
        """The problem for an address above the rate limit; wrong keys count, probes do not."""
        return None if self._rate is None or is_open(scope["path"]) else self._rate.refusal(scope)

    def _unauthorized(self, scope: HTTPScope) -> ProblemDetailsException | None:
        """The problem to refuse with, and its challenge (RFC 6750); None if no key is needed or it is right.

        Keys are compared in constant time. A token is kept for `check_access`.
        """
        api_key = self._state.settings.api_key
        if api_key is None or is_open(scope["path"]):
            return None
        given = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        challenge = 'Bearer realm="trivet"'
        detail = "Send the key as `Authorization: Bearer KEY`; in Python, give `api_key=`."
        if given is not None:
            scheme, _, key = given.partition(b" ")
            if scheme.lower() == b"bearer":
                if hmac.compare_digest(key.strip(), api_key.encode()):
                    return None
                try:
                    scope["state"]["token"] = token_of(key.strip().decode("latin-1"), api_key)
                    return None
                except InvalidInput as exc:
                    detail = str(exc)
            challenge += ', error="invalid_token"'
        return problem(401, detail, headers={"www-authenticate": challenge})


def logging_late_failures(app: ASGIApp, state: AppState) -> ASGIApp:
    """Log what fails after its response has begun as other failures, for which uvicorn would log a traceback.

    The response ends without its last chunk, which tells the client.
    """

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except LitestarException as exc:
            log_failure(_cause(exc), scope["state"]["request_id"], state.settings.secrets)

    return handle


def stating_startup_failures(app: ASGIApp) -> ASGIApp:
    """Have uvicorn log an error of Trivet that ends the application's start as its message, not its traceback."""

    async def handle(scope: Any, receive: Any, send: Any) -> None:  # Litestar's types leave out the lifespan's
        async def send_stated(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed":
                error = sys.exception()  # the router sends this while it handles it
                if isinstance(error, Exception) and isinstance(cause := _cause(error), TrivetError):
                    message["message"] = str(cause)
            await send(message)

        await app(scope, receive, send_stated if scope["type"] == "lifespan" else send)

    return handle


def _cause(error: Exception) -> Exception:
    """The error that layers of the router and a task group have wrapped."""
    if isinstance(error, LitestarException) and isinstance(error.__cause__, Exception):
        return _cause(error.__cause__)
    return _cause(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def is_open(path: str) -> bool:
    """Whether a path answers without the key: probes need none, and the console asks the reader for it."""
    return path.startswith(("/health/", "/console/")) or path in ("/version", "/")


def route_of(scope: HTTPScope) -> str:
    """The template of the route that took a request."""
    return scope.get("path_template", UNROUTED) or MOUNT


def encoded_path(scope: HTTPScope) -> str:
    """The path as the client sent it, still percent-encoded, so that a name in it may contain a slash.

    A memory may be called `bulk`, `delete` or `update`. Its first letter is encoded, too, so that the router does not
    match the POST route of that name.
    """
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")
    if scope["method"] in ("GET", "PATCH", "DELETE") and (found := _LIKE_A_ROUTE.search(path)):
        at = found.start(1)
        path = f"{path[:at]}%{ord(path[at]):x}{path[at + 1 :]}"
    return path


def request_id_of(scope: HTTPScope) -> bytes:
    """The caller's request id if it is short and plain, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value
    return secrets.token_hex(8).encode()
