"""What a request may do: with the server's key everything, with a token signed by that key what the token allows."""

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
"""Key in a handler's `opt` that marks it as read-only."""

METRICS: Final = "metrics"
"""Key in the `opt` of the handler that a metrics token opens."""

LEEWAY_S = 60
"""How far the clock of a token's signer may be off."""

MIN_KEY_BYTES = 32
"""Anyone with a token could guess a shorter key: RFC 7518 requires as many bytes as the signature has."""

_ALGORITHM = "HS256"


class TokenClaims(Struct, frozen=True, kw_only=True):
    """The claims that are read from a JSON Web Token (RFC 7519), besides `exp` and `nbf`.

    Attributes:
        namespaces: the names of the namespaces that it opens.
        access: what may be done there; `write` includes `read`, `metrics` opens the metrics and no namespace.
    """

    namespaces: list[str] = []
    access: Literal["read", "write", "metrics"]

    def __post_init__(self) -> None:
        if bool(self.namespaces) == (self.access == "metrics"):
            raise ValueError("`read` and `write` need `namespaces`, `metrics` takes none")


def signed(token: TokenClaims, api_key: str, *, expires_in_s: float | None = None) -> str:
    """A token that a server with this key accepts.

    Raises:
        InvalidInput: the key is too short.
    """
    import jwt

    _check_length(api_key)
    claims = msgspec.to_builtins(token)
    if expires_in_s is not None:
        claims["exp"] = int(time.time() + expires_in_s)
    return jwt.encode(claims, api_key, algorithm=_ALGORITHM)


def token_of(given: str, api_key: str) -> TokenClaims:
    """The token in a header.

    Raises:
        InvalidInput: it is not signed with the key, not or no longer valid, or lacks a claim.
    """
    if given.count(".") != 2:
        raise InvalidInput("This is not the server's key, which its TRIVET_API_KEY holds.")
    import jwt  # where `cryptography` is installed, it takes 16 MB and .2 s

    _check_length(api_key)
    try:
        return msgspec.convert(jwt.decode(given, api_key, algorithms=[_ALGORITHM], leeway=LEEWAY_S), TokenClaims)
    except (jwt.InvalidTokenError, msgspec.ValidationError) as exc:
        raise InvalidInput(f"The token is refused: {exc}.") from exc


def check_access(scope: Scope, namespace: str | None, *, writes: bool) -> None:
    """Check that a request's token allows access to a namespace; what is in none is for the server's key alone.

    Raises:
        PermissionDeniedException: the token does not allow it.
    """
    token = token_in(scope)
    if token is None:
        return
    if namespace is None:
        raise PermissionDeniedException("This needs the server's key")
    if namespace not in token.namespaces:
        raise PermissionDeniedException("The token does not open this namespace")
    if writes and token.access == "read":
        raise PermissionDeniedException("The token only reads")


def check_route(request: Request[Any, Any, Any], namespace: str | None) -> None:
    """Check access to a route: outside namespaces only the server's key opens those not marked as read-only.

    Raises:
        PermissionDeniedException: the token does not open it.
    """
    token, opt = token_in(request.scope), request.route_handler.opt
    if token is not None and token.access == "metrics" and opt.get(METRICS):
        return
    reads = opt.get(READS, False)
    if namespace is not None or not reads:
        check_access(request.scope, namespace, writes=not reads and request.method != "GET")


def token_in(scope: Scope) -> TokenClaims | None:
    """The token of a request; None if it has the server's key, or needs none."""
    token: TokenClaims | None = scope["state"].get("token")
    return token


def _check_length(api_key: str) -> None:
    if len(api_key.encode()) < MIN_KEY_BYTES:
        raise InvalidInput(f"To sign tokens TRIVET_API_KEY must have at least {MIN_KEY_BYTES} bytes.")
