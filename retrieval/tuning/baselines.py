"""Which profiles a tuning starts from and is judged against, out of the database that serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.engine import Trivet
from retrieval.errors import NotFound
from retrieval.evaluation.provenance import stored_models
from retrieval.evaluation.served import LentModel, look_up
from retrieval.profiles.profile import DEFAULT, Profile, check_name
from retrieval.profiles.schema import StoredVersion
from retrieval.settings import Settings
from retrieval.tuning.collection import CollectionPlan, Watch

TUNED = "tuned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Baselines:
    """What a tuning of a profile name starts from and is judged against.

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

    def collection_plan(self, settings: Settings, work: Path | None, concurrency: int, watch: Watch) -> CollectionPlan:
        """How the legs of these profiles are asked; `work` is the folder of the run files, None for the usual one."""
        return CollectionPlan(
            settings=settings,
            profiles=self.profiles,
            models=self.models,
            work=work or settings.data_dir / "tuning",
            concurrency=concurrency,
            watch=watch,
        )


async def find_baselines(settings: Settings, name: str, *, base: str) -> Baselines:
    """Look them up in the database that serves; `base` is the label of what to start from.

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
    return Baselines(
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
