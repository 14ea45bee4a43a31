"""What happens to every HTTP request before it is routed: its id, its clock, its key; most searches end here."""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Any

from litestar import Request, Response
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from retrieval.api.auth import challenge, needs_key
from retrieval.api.direct import direct
from retrieval.api.paths import encoded_path
from retrieval.api.problems import exception_handler, problem, problem_response
from retrieval.api.state import Shared

access_log = logging.getLogger("retrieval.api.access")

UNROUTED, OTHER = "unmatched", "other"
"""The labels of requests that no route took, so that made-up paths and methods cannot fill the registry."""

_REQUEST_ID = re.compile(rb"[\w.:\-]{1,128}", re.ASCII)


class Gateway:
    """ASGI wrapper around the router.

    Gives each response an `X-Request-Id` (the caller's, where it sent a plain one), refuses requests
    without the key, keeps the path percent-encoded for the router, answers what need not be routed, and measures.
    """

    def __init__(self, app: ASGIApp, shared: Shared) -> None:
        self._app = app
        self._shared = shared
        self._problem_of = exception_handler(shared.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = request_id_of(scope)
        scope["state"]["request_id"] = request_id.decode()
        status = 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        try:
            await self._answer(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            route = scope.get("path_template", UNROUTED)
            method = OTHER if route == UNROUTED else scope["method"]
            self._shared.metrics.observe_request(method, route, status, seconds)
            if access_log.isEnabledFor(logging.DEBUG):
                access_log.debug("%s %s %d %.2f ms", scope["method"], route, status, seconds * 1000.0)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        settings = self._shared.settings
        scope["path"] = encoded_path(scope)
        if settings.api_key is not None and needs_key(scope["path"]):
            refusal = challenge(scope["headers"], settings.api_key)
            if refusal is not None:
                found = problem(401, "Send the key as `Authorization: Bearer KEY`.")
                await _respond(problem_response(found, {"www-authenticate": refusal}), scope, receive, send)
                return
        endpoint = direct(scope, most_bytes=settings.max_body_bytes)
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        scope["path_template"] = endpoint.template
        try:
            body = await endpoint.answer(self._shared, receive)
        except Exception as exc:
            await _respond(self._problem_of(Request(scope, receive, send), exc), scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


async def _respond(response: Response[Any], scope: Scope, receive: Receive, send: Send) -> None:
    request: Request[Any, Any, Any] = Request(scope, receive, send)
    await response.to_asgi_response(app=None, request=request)(scope, receive, send)


def request_id_of(scope: Scope) -> bytes:
    """The caller's request id if it is short and plain, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value
    return secrets.token_hex(8).encode()
