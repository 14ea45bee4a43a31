"""Names in the path. Paths stay percent-encoded until here, so that a name may hold a slash."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote_to_bytes

from litestar import Request
from litestar.types import Scope

from retrieval.errors import InvalidInput


def encoded_path(scope: Scope) -> str:
    """The path as the client sent it, still percent-encoded."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        return quote(scope["path"])
    return raw.partition(b"?")[0].decode("latin-1")


def namespace_of(request: Request[Any, Any, Any]) -> str:
    """The namespace that the path names; the engine checks that it is a name.

    Raises:
        InvalidInput: it is not UTF-8.
    """
    return _decoded(request.path_params["ns"], "namespace")


def memory_id_of(request: Request[Any, Any, Any]) -> str:
    """The memory that the last segment of the path names, whatever characters it has.

    Raises:
        InvalidInput: it is not UTF-8.
    """
    return _decoded(request.scope["path"].rpartition("/")[2], "id")


def _decoded(segment: str, what: str) -> str:
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput("is not percent-encoded UTF-8", loc=(what,)) from exc
