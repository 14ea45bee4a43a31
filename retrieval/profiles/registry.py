"""Profiles by name: lookup, new versions, promotion and shadows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import structs

from postgres.connection import Connection
from retrieval.errors import Conflict, InvalidInput, NotFound
from retrieval.profiles.gate import GateReport, fixed_name
from retrieval.profiles.live import MAX_AGE_S, LiveProfiles, not_live
from retrieval.profiles.models import ModelRegistry
from retrieval.profiles.profile import Profile, check_name, check_profile, in_order, profile_of
from retrieval.profiles.schema import (
    Origin,
    ProfileInfo,
    ProfileInput,
    ProfileSummary,
    Promotion,
    ShadowSettings,
    StoredVersion,
    VersionSummary,
)
from retrieval.store import profiles as store
from retrieval.store.pool import Pool
from retrieval.store.profiles import SummaryRow, VersionRow
from retrieval.validation import check_names, check_storable, converted


class ProfileRegistry(LiveProfiles):
    """The profiles by name, to look up and to change.

    Methods that take a name raise `NotFound` for a name or version that does not exist, unless they say otherwise.
    """

    def __init__(
        self,
        pool: Pool,
        model_registry: ModelRegistry,
        *,
        own: Mapping[str, Profile] | None = None,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        """Does not access the database yet; see `LiveProfiles`. Models of new versions are loaded, to check them."""
        super().__init__(pool, own=own or {}, max_age_s=max_age_s)
        self.models = model_registry
        """Loads the models that profiles refer to."""

    async def list(self) -> Sequence[ProfileSummary]:
        """All profile names in the database, sorted."""
        async with self._pool.connection() as conn:
            rows = await store.summaries(conn)
        return [
            ProfileSummary(name=row.name, live=row.live, versions=row.versions, shadow=_shadow_settings(row))
            for row in rows
        ]

    async def version(self, name: str, version: int | None) -> StoredVersion:
        """One version; None for the newest."""
        async with self._pool.connection() as conn:
            rows = await _versions(conn, name)
            live = await _live_version(conn, name)
        for row in rows:
            if version in (None, row.version):
                return _stored_version(row, live)
        raise NotFound(f"profile {name!r} has no version {version}")

    async def describe(self, name: str, version: int | None = None) -> ProfileInfo:
        """A profile with its versions and history; `shown` is the requested version, or the live one."""
        async with self._pool.connection() as conn:
            history = await store.history(conn, name)  # first, so that `rows` has each version in it
            rows = await _versions(conn, name)
            [summary] = await store.summaries(conn, name)
        live = history[0].version if history else None
        by_version = {row.version: _stored_version(row, live) for row in rows}
        if version is not None and version not in by_version:
            raise NotFound(f"profile {name!r} has no version {version}")
        shown = live if version is None else version
        return ProfileInfo(
            name=name,
            live=live,
            shown=by_version[shown] if shown is not None else None,
            versions=[_summary_of(each) for each in by_version.values()],
            history=msgspec.convert([row._asdict() for row in history], list[Promotion]),
            shadow=_shadow_settings(summary),
        )

    async def put(
        self, name: str, parameters: ProfileInput | Profile, *, note: str = "", origin: Origin = "written"
    ) -> Profile:
        """Write a new version unless the newest has the same parameters; raises like `write`."""
        profile, _ = await self.write(name, parameters, note=note, origin=origin)
        return profile

    async def write(
        self, name: str, parameters: ProfileInput | Profile, *, note: str = "", origin: Origin = "written"
    ) -> tuple[Profile, bool]:
        """Write a new version that is not live yet, with the reason for it in `note`.

        Fields missing from a `ProfileInput` are taken from the live version, or from `default` if none is live.

        Returns:
            The version, and whether it is new: False if the newest one has the same parameters.

        Raises:
            InvalidInput: a bad name, parameters that cannot rank, or a model that cannot be loaded.
        """
        check_name(name)
        check_names(name=name)
        check_storable(parameters)
        check_storable(note, ("note",))
        if isinstance(parameters, ProfileInput):
            parameters = parameters.over(await self.base_of(name))
        profile = _checked(parameters)
        await self.models.load(profile.models)
        async with self._writing() as conn:
            rows = await store.versions(conn, name)
            if rows and (newest := _profile(rows[0])).fingerprint == profile.fingerprint:
                return newest, False
            version = rows[0].version + 1 if rows else 1
            await store.insert(conn, name, version, profile.parameters, origin=origin, note=note)
        return structs.replace(profile, name=name, version=version), True

    async def attach_report(self, name: str, version: int, report: GateReport) -> None:
        """Attach a gate report to a version.

        Raises:
            InvalidInput: the report is about other parameters.
        """
        stored = await self.version(name, version)
        if report.candidate_sha256 != stored.profile.fingerprint:
            raise InvalidInput(f"the report is not about the parameters of {stored.profile.label}")
        async with self._writing() as conn:
            await store.attach_report(conn, name, version, msgspec.to_builtins(report))

    async def promote(self, name: str, version: int | None = None) -> Profile:
        """Make a version live, by default the newest; no effect if it is live already.

        Raises:
            Conflict: the gate rejects it, or its report is against another version of the name than is live now.
            InvalidInput: its models cannot be loaded here.
        """
        stored = await self.version(name, version)
        await self.models.load(stored.profile.models)
        async with self._writing() as conn:
            live = await _live_version(conn, name)
            if live != stored.profile.version:
                _check_gate(stored, live)
                await store.promote(conn, name, stored.profile.version, by="promote")
        return stored.profile

    async def rollback(self, name: str) -> Profile:
        """Make the version live that was live before the last promotion; calling it twice goes back two.

        Raises:
            Conflict: no version was live before.
        """
        async with self._writing() as conn:
            rows = await _versions(conn, name)
            version = await store.roll_back(conn, name)
            if version is None:
                raise Conflict(
                    f"no version of profile {name!r} was live before; there is nothing to roll back to. "
                    "To leave the profile, give the namespace another one in its setting `profile`"
                )
        return next(_profile(row) for row in rows if row.version == version)

    async def set_shadow(self, name: str, version: int, share: float) -> None:
        """Make a version the shadow of the live one for a share of its queries.

        Raises:
            Conflict: it is live itself, or no version is.
            InvalidInput: the share is not in (0, 1], or its models cannot be loaded here.
        """
        if not 0 < share <= 1:
            raise InvalidInput("must be above 0 and at most 1", loc=("share",))
        stored = await self.version(name, version)
        await self.models.load(stored.profile.models)
        async with self._writing() as conn:
            live = await _live_version(conn, name)
            if live in (None, version):
                raise Conflict(f"{stored.profile.label} is live itself" if live else not_live(name, version))
            await store.set_shadow(conn, name, version, share)

    async def clear_shadow(self, name: str) -> None:
        """Remove the shadow of the live version."""
        async with self._writing() as conn:
            await _versions(conn, name)
            await store.clear_shadow(conn, name)

    async def ship(self, profile: Profile, report: GateReport | None) -> None:
        """Write a shipped profile unless the database has it; a new version becomes live.

        A live version that was tuned or written stays live. Of a version that is there, a newer report replaces the
        stored one: its models were trained again. Processes that start together write it once.
        """
        measured = msgspec.to_builtins(report)
        async with self._pool.connection() as conn:
            shipped = _shipped(await store.versions(conn, profile.name), profile)
            if shipped and not _is_newer(measured, shipped.report):
                return
        async with self._writing() as conn:
            rows = await store.versions(conn, profile.name)
            if shipped := _shipped(rows, profile):
                if _is_newer(measured, shipped.report):
                    await store.attach_report(conn, profile.name, shipped.version, measured)
                return
            origins = {row.version: row.origin for row in rows}
            version = max(origins) + 1 if profile.version in origins else profile.version
            parameters = profile.parameters
            await store.insert(conn, profile.name, version, parameters, origin="shipped", note="", report=measured)
            live = await _live_version(conn, profile.name)
            if live is None or origins[live] == "shipped":
                await store.promote(conn, profile.name, version, by="shipped")

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Connection]:
        async with self._pool.connection() as conn, store.writing(conn):
            yield conn
        self.invalidate()


def _check_gate(stored: StoredVersion, live: int | None) -> None:
    """Raise Conflict for a version without a passing gate report against the live one; shipped versions need none."""
    label, report = stored.profile.label, stored.report
    if stored.origin == "shipped":
        return
    if report is None:
        raise Conflict(f"{label} has no gate report: run trivet tune or trivet profile check")
    if report.candidate_sha256 != stored.profile.fingerprint:
        raise Conflict(f"the gate report of {label} is about other parameters: run trivet profile check")
    if not report.passed:
        raise Conflict(f"the gate refuses {label}: {'; '.join(report.reasons)}")
    replaced = f"{stored.profile.name}@{live}"
    if live is not None and report.baseline != fixed_name(replaced):
        raise Conflict(
            f"the gate report of {label} is against {report.baseline}, but {replaced} is live: run trivet profile check"
        )


def _checked(profile: Profile) -> Profile:
    """The profile validated, with legs and intents in order."""
    profile = converted(msgspec.to_builtins(profile), Profile)
    check_profile(profile)
    return in_order(profile)


async def _versions(conn: Connection, name: str) -> Sequence[VersionRow]:
    rows = await store.versions(conn, name)
    if not rows:
        raise NotFound(f"there is no profile {name!r}")
    return rows


async def _live_version(conn: Connection, name: str) -> int | None:
    newest = await store.history(conn, name, limit=1)
    return newest[0].version if newest else None


def _profile(row: VersionRow) -> Profile:
    return profile_of(row.name, row.version, row.parameters)


def _stored_version(row: VersionRow, live: int | None) -> StoredVersion:
    fields = {**row._asdict(), "profile": _profile(row), "live": row.version == live}
    return msgspec.convert(fields, StoredVersion)


def _summary_of(stored: StoredVersion) -> VersionSummary:
    return VersionSummary(
        version=stored.profile.version,
        origin=stored.origin,
        note=stored.note,
        created_at=stored.created_at,
        live=stored.live,
        gate=None if stored.report is None else stored.report.passed,
    )


def _shadow_settings(row: SummaryRow) -> ShadowSettings | None:
    version, share = row.shadow_version, row.share
    return None if version is None or share is None else ShadowSettings(version=version, share=share)


def _shipped(rows: Sequence[VersionRow], profile: Profile) -> VersionRow | None:
    """The row of this profile, shipped."""
    for row in rows:
        try:
            if row.origin == "shipped" and _profile(row).fingerprint == profile.fingerprint:
                return row
        except InvalidInput:  # written by a newer Trivet, so it is another profile
            continue
    return None


def _is_newer(report: Mapping[str, Any] | None, stored: Mapping[str, Any] | None) -> bool:
    """Whether there is a report, and none is stored or an earlier one, by their times in ISO 8601."""
    return report is not None and (stored is None or report["created_at"] > stored["created_at"])
