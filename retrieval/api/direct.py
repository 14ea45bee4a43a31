"""The two endpoints that are asked most, answered past the router, which takes as long as one of the legs.

Only requests that have nothing unusual about them go this way. What the router would repair or refuse is left to it: it
answers at the same paths.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from litestar.exceptions import InternalServerException
from litestar.types import HTTPScope, Receive

from retrieval.api.bodies import JSON_TYPE, decode
from retrieval.api.search import answer_context, answer_search, context_decoder, search_decoder
from retrieval.api.state import Shared

_PATH = re.compile(r"/v1/namespaces/([\w.:@+\-]+)/(search|context)", re.ASCII)
_HOST = re.compile(rb"[\w.:\-]+", re.ASCII)
_LENGTH = re.compile(rb"[0-9]{1,15}")
_TYPE = JSON_TYPE.encode()

_encoder = msgspec.json.Encoder()


class Direct(NamedTuple):
    """How a request is answered.

    Attributes:
        template: the path of the endpoint, as the router writes it.
        namespace: the one that is asked.
        decoder: of the body.
        ask: answers what the body asks.
    """

    template: str
    namespace: str
    decoder: msgspec.json.Decoder[Any]
    ask: Callable[[Shared, str, Any], Awaitable[Any]]

    async def answer(self, shared: Shared, receive: Receive) -> bytes:
        """The body of the answer, JSON; raises what the endpoint's handler raises."""
        request = decode(await _body(receive), self.decoder)
        return _encoder.encode(await self.ask(shared, self.namespace, request))


def direct(scope: HTTPScope, *, most_bytes: int) -> Direct | None:
    """How to answer a request whose path is still percent-encoded; None to leave it to the router.

    Args:
        scope: ASGI's.
        most_bytes: longest body that is taken.
    """
    found = _PATH.fullmatch(scope["path"])
    if found is None or scope["method"] != "POST" or scope.get("root_path") or not _is_plain(scope, most_bytes):
        return None
    namespace, noun = found.groups()
    template = f"/v1/namespaces/{{ns}}/{noun}"
    if noun == "search":
        return Direct(template, namespace, search_decoder, answer_search)
    return Direct(template, namespace, context_decoder, answer_context)


def _is_plain(scope: HTTPScope, most_bytes: int) -> bool:
    """Whether the headers announce JSON of some length within bounds, and the host is one."""
    is_json = has_length = False
    for name, value in scope["headers"]:
        if name == b"content-type":
            is_json = True
            if value != _TYPE:
                return False
        elif name == b"content-length":
            has_length = True
            if not _LENGTH.fullmatch(value) or int(value) > most_bytes:
                return False
        elif name == b"transfer-encoding" or (name == b"host" and not _HOST.fullmatch(value)):
            return False
    return is_json and has_length


async def _body(receive: Receive) -> bytes:
    """The whole body.

    Raises:
        InternalServerException: the client went away before its end, as the router says it.
    """
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise InternalServerException("client disconnected prematurely")
        parts.append(message["body"])
        if not message.get("more_body"):
            return b"".join(parts)
