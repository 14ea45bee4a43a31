"""How many requests one address may send."""

from __future__ import annotations

import time
from ipaddress import IPv6Address

from cachetools import LRUCache
from litestar.plugins.problem_details import ProblemDetailsException
from litestar.types import HTTPScope

from retrieval.api.problems import problem

_MINUTE_NS = 60 * 10**9
_ADDRESSES = 65_536
"""Most addresses remembered; the least recently seen are dropped."""


class RateLimit:
    """Lets an address send `per_minute` requests at once, and as many in each following minute.

    A leaky bucket, by the generic cell rate algorithm (ITU-T I.371): it stores only the time at which an address's
    bucket will be empty. Refused requests do not count.
    """

    def __init__(self, per_minute: int) -> None:
        self._interval_ns = _MINUTE_NS // per_minute
        self._full_ns = self._interval_ns * per_minute
        self._empty_at: LRUCache[str | bytes, int] = LRUCache(_ADDRESSES)

    def refusal(self, scope: HTTPScope) -> ProblemDetailsException | None:
        """The problem to refuse a request with, if its address has sent too many."""
        if scope["client"] is None:  # the server's own, for a tool
            return None
        address = _sender(scope["client"][0])
        now = time.monotonic_ns()
        empty_at = max(self._empty_at.get(address, now), now) + self._interval_ns
        excess_ns = empty_at - now - self._full_ns
        if excess_ns > 0:
            wait_s = -(-excess_ns // 10**9)
            detail = f"Too many requests from this address: TRIVET_RATE_LIMIT allows the next one in {wait_s} s"
            return problem(429, detail, headers={"retry-after": str(wait_s)})
        self._empty_at[address] = empty_at
        return None


def _sender(address: str) -> str | bytes:
    """The sender at an address; for IPv6 its first 64 bits, as one sender has all addresses that share them."""
    if ":" not in address:
        return address
    found = IPv6Address(address)
    return found.packed[:8] if found.ipv4_mapped is None else str(found.ipv4_mapped)
