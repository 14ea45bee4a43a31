"""Which profiles a tuning starts from and is judged against, out of the database that serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.engine import Trivet
from retrieval.errors import NotFound
from retrieval.evaluation.provenance import stored_models
from retrieval.evaluation.served import LentModel, look_up
from retrieval.profile_types import StoredVersion
from retrieval.profiles import DEFAULT, Profile, check_name
from retrieval.settings import Settings

TUNED = "tuned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rivals:
    """Profiles that matter to a profile of some name.

    Attributes:
        base: what the search starts from, or what is checked.
        baseline: the live version of that name, else that of `default`; its fixed recipe is the yardstick.
        live: the same if it was tuned, which makes it a yardstick as it answers; else None.
        next_version: of the name.
        models: that other databases must be lent to ask by these.
    """

    base: Profile
    baseline: Profile
    live: Profile | None
    next_version: int
    models: Sequence[LentModel]

    @property
    def profiles(self) -> list[Profile]:
        """The base, then the baseline."""
        return [self.base, self.baseline]


async def find_rivals(settings: Settings, name: str, *, base: str) -> Rivals:
    """Look them up.

    Args:
        settings: of the database that serves.
        name: of the profile that is to be made or checked.
        base: label of the base.

    Raises:
        InvalidInput: a bad name, or there is no such base.
    """
    check_name(name)
    async with Trivet.open(settings) as engine:
        start = await engine.profiles.find(base)
        own = await _live_version(engine, name)
        yardstick = own or await _live_version(engine, DEFAULT.name)
        baseline = yardstick.profile if yardstick is not None else DEFAULT
        next_version = await _next_version(engine, name)
    profiles = [start, baseline]
    lent: Sequence[LentModel] = ()
    if settings.uses_embedded and any(stored_models(profile) for profile in profiles):
        lent = (await look_up(settings, [profile.label for profile in profiles])).models
    return Rivals(
        base=start,
        baseline=baseline,
        live=own.profile if own is not None and own.origin == TUNED else None,
        next_version=next_version,
        models=lent,
    )


async def _live_version(engine: Trivet, name: str) -> StoredVersion | None:
    try:
        info = await engine.profiles.describe(name)
    except NotFound:
        return None
    return info.shown if info.live is not None else None


async def _next_version(engine: Trivet, name: str) -> int:
    try:
        return max(each.version for each in (await engine.profiles.describe(name)).versions) + 1
    except NotFound:
        return 1
