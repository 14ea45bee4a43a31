"""What a request may do: with the server's key everything, with a token signed with that key what the token says."""

from __future__ import annotations

import time
from typing import Any, Final, Literal

import msgspec
from litestar import Request
from litestar.exceptions import PermissionDeniedException
from litestar.types import Scope
from msgspec import Struct

from retrieval.errors import InvalidInput

READS: Final = "reads"
"""The key of a handler's `opt` which says that its POST changes nothing."""

METRICS: Final = "metrics"
"""The same of the handler that a token for the metrics opens."""

LEEWAY_S = 60
"""By how much the clock of whoever signs a token may be wrong."""

MIN_KEY_BYTES = 32
"""A shorter key could be guessed by whoever has a token: RFC 7518 wants as many bytes as the signature has."""

_ALGORITHM = "HS256"


class Token(Struct, frozen=True, kw_only=True):
    """The claims that are read of a JSON Web Token (RFC 7519), beside `exp` and `nbf`.

    Attributes:
        namespaces: the names of those that it opens.
        access: what may be done there; `write` includes `read`, `metrics` opens the metrics and no namespace.
    """

    namespaces: list[str] = []
    access: Literal["read", "write", "metrics"]

    def __post_init__(self) -> None:
        if bool(self.namespaces) == (self.access == "metrics"):
            raise ValueError("`read` and `write` need `namespaces`, `metrics` takes none")


def signed(token: Token, api_key: str, *, expires_in_s: float | None = None) -> str:
    """A token that a server with this key takes.

    Raises:
        InvalidInput: the key is too short.
    """
    import jwt

    _check_length(api_key)
    claims = msgspec.to_builtins(token)
    if expires_in_s is not None:
        claims["exp"] = int(time.time() + expires_in_s)
    return jwt.encode(claims, api_key, algorithm=_ALGORITHM)


def token_of(given: str, api_key: str) -> Token:
    """The token in a header.

    Raises:
        InvalidInput: it is not signed with the key, not or no longer valid, or lacks a claim.
    """
    if given.count(".") != 2:
        raise InvalidInput("This is not the server's key, which its TRIVET_API_KEY holds.")
    import jwt  # where `cryptography` is installed, it takes 16 MB and .2 s

    _check_length(api_key)
    try:
        return msgspec.convert(jwt.decode(given, api_key, algorithms=[_ALGORITHM], leeway=LEEWAY_S), Token)
    except (jwt.InvalidTokenError, msgspec.ValidationError) as exc:
        raise InvalidInput(f"The token is refused: {exc}.") from exc


def check_access(scope: Scope, namespace: str | None, *, writes: bool) -> None:
    """Check that a request's token lets it do something in a namespace, or in none: a request without one may do all.

    Raises:
        PermissionDeniedException: the token does not.
    """
    token = token_in(scope)
    if token is None:
        return
    if namespace is not None and namespace not in token.namespaces:
        raise PermissionDeniedException("The token does not open this namespace")
    if writes and (namespace is None or token.access == "read"):
        raise PermissionDeniedException("The token only reads" if namespace else "This needs the server's key")


def check_route(request: Request[Any, Any, Any], namespace: str | None) -> None:
    """Check access to a route: what is outside namespaces is for the server's key alone, unless it says that it reads.

    Raises:
        PermissionDeniedException: the token does not open it.
    """
    token, opt = token_in(request.scope), request.route_handler.opt
    if token is not None and token.access == "metrics" and opt.get(METRICS):
        return
    reads = opt.get(READS) or (namespace is not None and request.method == "GET")
    check_access(request.scope, namespace, writes=not reads)


def token_in(scope: Scope) -> Token | None:
    """The token of a request; None if it has the server's key, or needs none."""
    token: Token | None = scope["state"].get("token")
    return token


def _check_length(api_key: str) -> None:
    if len(api_key.encode()) < MIN_KEY_BYTES:
        raise InvalidInput(f"To sign tokens TRIVET_API_KEY must have at least {MIN_KEY_BYTES} bytes.")
