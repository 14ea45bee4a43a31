"""The bearer key, where one is configured."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

OPEN_PREFIX = "/health/"
OPEN_PATHS = frozenset({"/version"})
"""What answers without the key, so that probes need none; everything else wants it."""


def needs_key(path: str) -> bool:
    """Whether a path is closed to those without the key."""
    return path not in OPEN_PATHS and not path.startswith(OPEN_PREFIX)


def challenge(headers: Iterable[tuple[bytes, bytes]], api_key: str) -> str | None:
    """Check the `Authorization` header, in time that does not depend on the key given.

    Returns:
        The `WWW-Authenticate` value to refuse with (RFC 6750), or None where the key is right.
    """
    given = next((value for name, value in headers if name == b"authorization"), None)
    if given is None:
        return 'Bearer realm="trivet"'
    scheme, _, key = given.partition(b" ")
    if scheme.lower() == b"bearer" and hmac.compare_digest(key.strip(), api_key.encode()):
        return None
    return 'Bearer realm="trivet", error="invalid_token"'
