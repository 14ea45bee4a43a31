"""The errors of a client, all of them subclasses of `TrivetError`.

TrivetError
├── InvalidInput   the request is refused; `loc` names the field, `errors` lists each fault (422, and 400, 415, 421)
├── Unauthorized   a key is missing or wrong (401), or a token does not open this (403)
├── NotFound       no such namespace or memory (404 of the API)
├── Conflict       it conflicts with what is stored (409)
├── BodyTooLarge   the request is larger than the server takes (413)
├── RateLimited    too many requests (429)
├── Unavailable    the server cannot answer now (503)
├── ServerError    the server failed, or is not a Trivet server (any other status)
└── Unreachable    no answer came from its address
"""

from __future__ import annotations

from collections.abc import Mapping

from retrieval.errors import Conflict, InvalidInput, NotFound, TrivetError

__all__ = [
    "BodyTooLarge",
    "Conflict",
    "InvalidInput",
    "NotFound",
    "RateLimited",
    "ServerError",
    "TrivetError",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
]


class Unauthorized(TrivetError):
    """A valid key is needed."""


class BodyTooLarge(TrivetError):
    """The request is larger than the server takes."""


class RateLimited(TrivetError):
    """Too many requests."""


class Unavailable(TrivetError):
    """The server cannot answer now."""


class ServerError(TrivetError):
    """The server failed."""


class Unreachable(TrivetError):
    """No answer came from the server."""


CLASS_OF: Mapping[int, type[TrivetError]] = {
    400: InvalidInput,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    413: BodyTooLarge,
    415: InvalidInput,
    421: InvalidInput,
    422: InvalidInput,
    429: RateLimited,
    503: Unavailable,
}
"""By HTTP status; others are `ServerError`."""
