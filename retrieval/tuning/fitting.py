"""A tuning: the profiles that it starts from and is judged against, its result, and storing it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from msgspec import structs

from retrieval.engine import Trivet
from retrieval.errors import NotFound
from retrieval.evaluation.provenance import model_checksums, versions
from retrieval.evaluation.served import LentModel, lendable
from retrieval.evaluation.study import Watch
from retrieval.profiles.gate import Trial, fixed_name, judge
from retrieval.profiles.profile import DEFAULT, Profile, check_name
from retrieval.settings import Settings
from retrieval.tuning.collection import CollectionPlan, Runs
from retrieval.tuning.replay import Floats, JudgedQueries
from retrieval.tuning.runs import DEPTHS, legs_key
from retrieval.tuning.search import SHARES, Study, data_of, study
from retrieval.tuning.summary import HELD_OUT, Tuning, curve_of, groups_of, landscapes_of, reliability_of, scores_of
from retrieval.types.search import Leg


@dataclass(frozen=True, kw_only=True, slots=True)
class Baselines:
    """What a tuning of a profile name starts from and is judged against.

    Attributes:
        base: what the search starts from, or what is checked.
        baseline: the live version of that name, else that of `default`; its fixed recipe is the yardstick.
        live: the same if it was tuned, so that its own answers are a second yardstick; else None.
        next_version: the next version of the name.
        models: the profiles' models to lend to other databases.
    """

    base: Profile
    baseline: Profile
    live: Profile | None
    next_version: int
    models: Sequence[LentModel]

    def collection_plan(self, settings: Settings, work: Path | None, concurrency: int, watch: Watch) -> CollectionPlan:
        """How the legs of these profiles are run; `work` is the folder of the run files, None for the usual one."""
        return CollectionPlan(
            settings=settings,
            profiles=[self.base, self.baseline],
            models=self.models,
            work=work or settings.data_dir / "tuning",
            concurrency=concurrency,
            watch=watch,
        )


async def find_baselines(settings: Settings, name: str, *, base: str) -> Baselines:
    """Look them up in the serving database; `base` is the label of the profile to start from.

    Raises:
        InvalidInput: a bad name, or there is no such base.
    """
    check_name(name)
    async with Trivet.open(settings) as engine:
        start = await engine.profiles.find(base)
        try:
            own = await engine.profiles.describe(name)
        except NotFound:
            own = None
        live = own.shown if own is not None else None
        yardstick = live or (await engine.profiles.describe(DEFAULT.name)).shown
        baseline = yardstick.profile if yardstick is not None else DEFAULT
        models = await lendable(engine, [start, baseline])
    return Baselines(
        base=start,
        baseline=baseline,
        live=live.profile if live is not None and live.origin == "tuned" else None,
        next_version=own.versions[0].version + 1 if own is not None else 1,
        models=models,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TuningPlan:
    """How a profile is tuned: its name, the number of folds held out in turn, a description of the source.

    `skipped` is the number of its queries without relevant memories.
    """

    name: str
    folds: int
    seed: int
    source: str
    skipped: int
    watch: Watch


def tune(runs: Runs, baselines: Baselines, plan: TuningPlan, *, started: float) -> Tuning:
    """Search, hold out, and let the gate judge, storing nothing; `started` is `perf_counter()` at the beginning."""
    queries = runs[legs_key(baselines.base)]
    with plan.watch("replaying recipes", len(queries) * len(DEPTHS)) as progress:
        data = data_of(queries, baselines.base, progress)
    with plan.watch("searching", plan.folds * len(SHARES) + 1) as progress:
        found = study(data, count=plan.folds, seed=plan.seed, progress=progress)
    profile = structs.replace(found.final.profile, name=plan.name, version=baselines.next_version)
    return _summary(found, profile, baselines, runs, plan, started)


async def store(settings: Settings, tuning: Tuning, *, promote: bool) -> Tuning:
    """Write the profile with the gate's report, live if it passed and `promote` is set; returns the tuning labelled."""
    async with Trivet.open(settings) as engine:
        note = f"tuned on {tuning.source}, from {tuning.base}"
        profile = await engine.profiles.put(tuning.profile.name, tuning.profile, note=note[:1_000], origin="tuned")
        report = structs.replace(tuning.gate, candidate=profile.label, candidate_sha256=profile.fingerprint)
        await engine.profiles.attach_report(profile.name, profile.version, report)
        if promote and report.passed:
            await engine.profiles.promote(profile.name, profile.version)
    return structs.replace(tuning, label=profile.label, profile=profile, gate=report)


def _judged(profile: Profile, runs: Runs) -> JudgedQueries:
    return JudgedQueries(runs[legs_key(profile)], profile)


def _summary(
    found: Study, profile: Profile, baselines: Baselines, runs: Runs, plan: TuningPlan, started: float
) -> Tuning:
    queries, base, baseline = found.data.queries, baselines.base, baselines.baseline
    yardstick, even = _judged(baseline, runs), structs.replace(baseline.fixed, weights=dict.fromkeys(Leg, 1.0))
    held_out, fixed, live = found.held_out[SHARES[-1]], yardstick.fixed(baseline.fixed), yardstick.adaptive(baseline)
    weights = np.array([query.weight for query in queries])
    trial = Trial(
        sets=[query.set for query in queries],
        intents=[query.label for query in queries],
        candidate=held_out,
        baseline=fixed,
        live=live if baselines.live is not None else None,
        weights=None if (weights == weights[0]).all() else weights,
    )
    gate = judge(
        trial,
        candidate=profile,
        baseline=fixed_name(baseline.label),
        live=None if baselines.live is None else baselines.live.label,
        folds=len(found.parts),
        seed=plan.seed,
    )
    systems: dict[str, Floats] = {
        "equal weights": yardstick.fixed(even),
        fixed_name(baseline.label): fixed,
        baseline.label: live,
        base.label: _judged(base, runs).adaptive(base),
        HELD_OUT: held_out,
    }
    return Tuning(
        label=None,
        base=base.label,
        improved=found.final.settings is not None,
        profile=profile,
        settings=found.final.settings,
        fold_settings=[each.settings for each in found.fits],
        sets=dict(sorted(Counter(query.set for query in queries).items())),
        skipped=plan.skipped,
        scores=scores_of(queries, systems, seed=plan.seed),
        gate=gate,
        groups=groups_of(queries, trial, seed=plan.seed),
        curve=curve_of(found, seed=plan.seed),
        landscapes=landscapes_of(found),
        reliability=reliability_of(queries),
        source=plan.source,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=plan.seed,
        versions=versions(),
        models=model_checksums([profile]),
        seconds=time.perf_counter() - started,
    )
