"""Resolves the profile of a request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

from retrieval.errors import InvalidInput, UnknownProfile
from retrieval.profiles.profile import DEFAULT, Profile, parse_label, profile_of
from retrieval.store import profiles as store
from retrieval.store.pool import Pool
from retrieval.store.profiles import LiveRow

log = logging.getLogger(__name__)

MAX_AGE_S = 1.0
"""How stale a process's view of the live profiles may be; the check is one statement on one row."""


class LiveProfiles:
    """A cached view of the database's live profiles, overlaid with profiles that only this process has."""

    def __init__(self, pool: Pool, *, own: Mapping[str, Profile], max_age_s: float = MAX_AGE_S) -> None:
        """Does not access the database yet; profiles in `own`, by name, take precedence over the database's."""
        self._pool = pool
        self._own = own
        self._max_age_s = max_age_s
        self._live: dict[str, Profile] = {}
        self._shadows: dict[str, tuple[Profile, float]] = {}
        self._exact: dict[tuple[str, int], Profile] = {}
        self._changes = ""
        self._checked = -float("inf")
        self._invalidations = 0
        self._lock = asyncio.Lock()

    async def find(self, wanted: str | None) -> Profile:
        """The profile that a request or a namespace refers to, usually without a database query.

        Args:
            wanted: `name` for its live version, `name@version` for a specific one; None for `default`.

        Raises:
            InvalidInput: the name or version does not exist, or no version is live.
        """
        name, version = parse_label(wanted or DEFAULT.name)
        if name in self._own and version in (None, self._own[name].version):
            return self._own[name]
        await self._refresh()
        if version is not None:
            return await self._find_exactly(name, version)
        live = self._live.get(name)
        if live is None:
            raise await self._unknown(name)
        return live

    def shadow_of(self, profile: Profile) -> tuple[Profile, float] | None:
        """The shadow of a live version and its share of queries; None if there is none, or `profile` is not live."""
        return self._shadows.get(profile.name) if self._live.get(profile.name) == profile else None

    async def base_of(self, name: str) -> Profile:
        """The profile that a new version starts from: the live one of that name, or else the live `default`."""
        await self._refresh()
        return self._live.get(name) or self._live.get(DEFAULT.name) or DEFAULT

    def invalidate(self) -> None:
        """Check the database again before the next lookup, because this process has changed it."""
        self._invalidations += 1
        self._checked = -float("inf")

    async def _refresh(self) -> None:
        """Load what other processes have changed, unless checked within `max_age_s`."""
        if self._is_fresh():
            return
        async with self._lock:
            if self._is_fresh():
                return
            started, invalidations = time.monotonic(), self._invalidations
            async with self._pool.connection() as conn:
                changes = await store.changes(conn)
                if changes != self._changes:
                    self._take(await store.live(conn))
                    self._changes = changes
            if invalidations == self._invalidations:
                self._checked = started

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._checked < self._max_age_s

    def _take(self, rows: Sequence[LiveRow]) -> None:
        live: dict[str, Profile] = {}
        shadows: dict[str, tuple[Profile, float]] = {}
        for row in rows:
            try:
                live[row.name] = profile_of(row.name, row.version, row.parameters)
                if row.shadow_version is not None and row.shadow_parameters is not None and row.share is not None:
                    shadow = profile_of(row.name, row.shadow_version, row.shadow_parameters)
                    shadows[row.name] = (shadow, row.share)
            except InvalidInput as exc:
                log.error("profile %s is left out: %s", row.name, exc)
        self._live, self._shadows, self._exact = live, shadows, {}

    async def _find_exactly(self, name: str, version: int) -> Profile:
        if (name, version) not in self._exact:
            async with self._pool.connection() as conn:
                rows = await store.versions(conn, name, version)
            if not rows:
                raise await self._unknown(name, version)
            self._exact[name, version] = profile_of(name, version, rows[0].parameters)
        return self._exact[name, version]

    async def _unknown(self, name: str, version: int | None = None) -> InvalidInput:
        async with self._pool.connection() as conn:
            names = {row.name: row for row in await store.summaries(conn)}
        if name not in names:
            return UnknownProfile(name, sorted({*names, *self._own}))
        if version is not None:
            return InvalidInput(f"profile {name!r} has no version {version}", loc=("profile",))
        return InvalidInput(not_live(name, names[name].versions), loc=("profile",))


def not_live(name: str, version: int) -> str:
    """The message for a name without a live version; `version` is an existing one."""
    return (
        f"no version of profile {name!r} is live; promote one (POST /v1/profiles/{name}/promote or "
        f"trivet profile promote {name}), or ask for one by number: {name}@{version}"
    )
