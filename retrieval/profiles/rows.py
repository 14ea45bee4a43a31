"""Converts rows to profiles and to the API's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from retrieval.errors import InvalidInput
from retrieval.profiles.profile import Profile, in_order
from retrieval.profiles.schema import Promotion, ShadowSettings, StoredVersion, VersionSummary
from retrieval.store.profiles import PromotionRow, VersionRow


def profile_of(name: str, version: int, parameters: Mapping[str, object]) -> Profile:
    """Build a profile from stored parameters.

    Raises:
        InvalidInput: they do not fit this version of Trivet.
    """
    try:
        return in_order(msgspec.convert({**parameters, "name": name, "version": version}, Profile))
    except msgspec.ValidationError as exc:
        raise InvalidInput(f"{name}@{version} is of another version of Trivet: {exc}", loc=("profile",)) from exc


def read_row(row: VersionRow) -> Profile:
    """The profile of a row; raises like `profile_of`."""
    return profile_of(row.name, row.version, row.parameters)


def stored_version(row: VersionRow, live: int | None) -> StoredVersion:
    """A version with its metadata and report; raises like `profile_of`."""
    fields = {"origin": row.origin, "note": row.note, "created_at": row.created_at, "report": row.report}
    return msgspec.convert({**fields, "profile": read_row(row), "live": row.version == live}, StoredVersion)


def summary_of(stored: StoredVersion) -> VersionSummary:
    """Summarise a version for a list."""
    return VersionSummary(
        version=stored.profile.version,
        origin=stored.origin,
        note=stored.note,
        created_at=stored.created_at,
        live=stored.live,
        gate=None if stored.report is None else stored.report.passed,
    )


def shadow_settings(version: int | None, share: float | None) -> ShadowSettings | None:
    """Combine the two columns; None if there is no shadow."""
    return None if version is None or share is None else ShadowSettings(version=version, share=share)


def promotion_of(row: PromotionRow) -> Promotion:
    """Convert a row of the history."""
    return msgspec.convert({"version": row.version, "by": row.by, "at": row.at}, Promotion)


def is_shipped(rows: Sequence[VersionRow], profile: Profile) -> bool:
    """Whether one of the rows is this profile, shipped."""
    for row in rows:
        try:
            if row.origin == "shipped" and read_row(row).fingerprint == profile.fingerprint:
                return True
        except InvalidInput:  # written by a newer Trivet, so it is another profile
            continue
    return False


def not_live(name: str, version: int) -> str:
    """The message for a name without a live version; `version` is an existing one."""
    return (
        f"no version of profile {name!r} is live; promote one (POST /v1/profiles/{name}/promote or "
        f"trivet profile promote {name}), or ask for one by number: {name}@{version}"
    )
