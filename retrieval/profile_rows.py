"""From rows to profiles, and to what the wire tells of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from retrieval.errors import InvalidInput
from retrieval.profile_types import Promotion, ShadowSettings, StoredVersion, VersionSummary
from retrieval.profiles import Profile, in_order
from retrieval.store.profiles import PromotionRow, VersionRow


def profile_of(name: str, version: int, parameters: Mapping[str, object]) -> Profile:
    """The profile of stored parameters.

    Raises:
        InvalidInput: they are not those of this version of Trivet.
    """
    try:
        return in_order(msgspec.convert({**parameters, "name": name, "version": version}, Profile))
    except msgspec.ValidationError as exc:
        raise InvalidInput(f"{name}@{version} is of another version of Trivet: {exc}", loc=("profile",)) from exc


def read_row(row: VersionRow) -> Profile:
    """The profile of a row; raises as `profile_of` does."""
    return profile_of(row.name, row.version, row.parameters)


def stored_version(row: VersionRow, live: int | None) -> StoredVersion:
    """A version with all that is known of it; raises as `profile_of` does."""
    fields = {"origin": row.origin, "note": row.note, "created_at": row.created_at, "report": row.report}
    return msgspec.convert({**fields, "profile": read_row(row), "live": row.version == live}, StoredVersion)


def summary_of(stored: StoredVersion) -> VersionSummary:
    """A version in a line."""
    return VersionSummary(
        version=stored.profile.version,
        origin=stored.origin,
        note=stored.note,
        created_at=stored.created_at,
        live=stored.live,
        gate=None if stored.report is None else stored.report.passed,
    )


def shadow_settings(version: int | None, share: float | None) -> ShadowSettings | None:
    """The two columns as one, which are both there or neither is."""
    return None if version is None or share is None else ShadowSettings(version=version, share=share)


def promotion_of(row: PromotionRow) -> Promotion:
    """A row of the history."""
    return msgspec.convert({"version": row.version, "by": row.by, "at": row.at}, Promotion)


def is_shipped(rows: Sequence[VersionRow], profile: Profile) -> bool:
    """Whether one of the rows is this profile, shipped."""
    for row in rows:
        try:
            if row.origin == "shipped" and read_row(row).fingerprint == profile.fingerprint:
                return True
        except InvalidInput:  # of a newer version of Trivet, so not this one
            continue
    return False


def not_live(name: str, version: int) -> str:
    """What to say to who asks for a name that has no live version; `version` is one that there is."""
    return (
        f"no version of profile {name!r} is live; promote one (POST /v1/profiles/{name}/promote or "
        f"trivet profile promote {name}), or ask for one by number: {name}@{version}"
    )
