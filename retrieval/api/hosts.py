"""Which hosts and origins a request may name; without a key, this keeps web pages out.

A web page can reach a server on loopback in two ways: under its own host name, made to resolve to 127.0.0.1 (DNS
rebinding), which the browser sends as `Host`, and by cross-origin requests, which carry its origin as `Origin`. What a
page embeds carries none, only `Sec-Fetch-Site`; the page learns from it whether the answer was an error. A link
may lead here from any page.
"""

from __future__ import annotations

import ipaddress
import re

from litestar.plugins.problem_details import ProblemDetailsException
from litestar.types import HTTPScope

from retrieval.api.problems import problem
from retrieval.settings import Settings

_OWN_SITES = frozenset({"none", "same-origin"})
"""Values of `Sec-Fetch-Site`: the reader opens an address, or this server's own page asks."""

_AUTHORITY = re.compile(r"(\[[\da-f:.]+\]|[^:\[\]]+)(:\d*)?")


class HostCheck:
    """Checks `Host`, `Origin` and `Sec-Fetch-Site` of requests.

    Allows loopback names, the address that the server listens on, and `TRIVET_ALLOWED_HOSTS`; with a key but without
    that setting, any host. A request without these headers does not come from a web page.
    """

    def __init__(self, settings: Settings) -> None:
        self._has_key = settings.api_key is not None
        listed = [entry.strip() for entry in settings.allowed_hosts.lower().split(",")]
        names = {_name_of(entry) or entry for entry in listed}  # an IPv6 address may lack its brackets
        is_open = self._has_key and not settings.allowed_hosts
        self._answers_all = is_open or any(entry.partition(":")[0] == "*" for entry in listed)
        self._names = {"localhost", settings.host.lower(), *names} - {""}
        self._suffixes = tuple(name[1:] for name in names if name.startswith("*."))

    def refusal(self, scope: HTTPScope) -> ProblemDetailsException | None:
        """The problem to refuse a request with: 421, 403, or none."""
        hosts = _values(scope, b"host")
        for host in hosts:
            if not self._answers(_name_of(host)):
                return problem(421, f"This server does not answer for {host!r}: TRIVET_ALLOWED_HOSTS can name it")
        if self._has_key:
            return None
        for origin in _values(scope, b"origin"):
            if origin.partition("://")[2] not in hosts:
                return problem(403, f"Without a key, pages of {origin!r} may not use this server")
        is_own = _OWN_SITES.issuperset(_values(scope, b"sec-fetch-site"))
        if not is_own and _values(scope, b"sec-fetch-dest") != ["document"]:
            return problem(403, "Without a key, pages of other origins may not use this server")
        return None

    def _answers(self, name: str) -> bool:
        return self._answers_all or name in self._names or name.endswith(self._suffixes) or _is_loopback(name)


def _name_of(host: str) -> str:
    """A host without its port, brackets and final dot; empty if it is malformed."""
    found = _AUTHORITY.fullmatch(host)
    return found[1].strip("[]").removesuffix(".") if found else ""


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _values(scope: HTTPScope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for given, value in scope["headers"] if given == name]
