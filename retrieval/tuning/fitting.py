"""A tuning from saved runs to a stored profile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from msgspec import structs

from retrieval.engine import Trivet
from retrieval.evaluation.provenance import model_checksums, versions
from retrieval.profiles.gate import GateReport, judge
from retrieval.profiles.profile import Profile
from retrieval.settings import Settings
from retrieval.tuning.baselines import Baselines
from retrieval.tuning.collection import Runs, Watch
from retrieval.tuning.replay import Floats
from retrieval.tuning.runs import DEPTHS, SavedQuery, legs_key
from retrieval.tuning.study import SHARES, Contender, Study, data_of, study, trial_of
from retrieval.tuning.summary import HELD_OUT, Tuning, curve_of, groups_of, landscapes_of, reliability_of, scores_of


@dataclass(frozen=True, kw_only=True, slots=True)
class TuningPlan:
    """How a profile is tuned: its name, the folds held out in turn, what is learned from in words."""

    name: str
    folds: int
    seed: int
    source: str
    watch: Watch


def tune(runs: Runs, baselines: Baselines, plan: TuningPlan, *, started: float) -> Tuning:
    """Search, hold out, and let the gate judge. Nothing is stored; `started` is the counter when the command began."""
    base = _contender(baselines.base, runs)
    with plan.watch("replaying recipes", len(base.queries) * len(DEPTHS)) as progress:
        data = data_of(base, progress)
    with plan.watch("searching", plan.folds * len(SHARES) + 1) as progress:
        found = study(data, count=plan.folds, seed=plan.seed, progress=progress)
    profile = structs.replace(found.final.profile, name=plan.name, version=baselines.next_version)
    return _summary(found, profile, baselines, runs, plan, started)


def check(runs: Runs, baselines: Baselines, *, seed: int) -> GateReport:
    """Let the gate judge the base as it is: nothing is fitted, so every query is held out."""
    base, baseline = _contender(baselines.base, runs), _contender(baselines.baseline, runs)
    live = baselines.live if baselines.live is not None and baselines.live != baselines.base else None
    trial = trial_of(base.queries, base.adaptive(), baseline.fixed(), baseline.adaptive() if live is not None else None)
    return judge(
        trial,
        candidate=baselines.base,
        baseline=fixed_name(baselines.baseline),
        live=None if live is None else live.label,
        folds=0,
        seed=seed,
    )


async def store(settings: Settings, tuning: Tuning, *, promote: bool) -> Tuning:
    """Write the profile with the gate's report, and make it live if that is wanted and the gate lets it.

    Returns:
        The tuning with the label that the profile got.
    """
    async with Trivet.open(settings) as engine:
        note = f"tuned on {tuning.source}, from {tuning.base}"
        profile = await engine.profiles.put(tuning.profile.name, tuning.profile, note=note[:1_000], origin="tuned")
        report = structs.replace(tuning.gate, candidate=profile.label, candidate_sha256=profile.fingerprint)
        await engine.profiles.attach_report(profile.name, profile.version, report)
        if promote and report.passed:
            await engine.profiles.promote(profile.name, profile.version)
    return structs.replace(tuning, label=profile.label, profile=profile, gate=report)


def fixed_name(profile: Profile) -> str:
    """What the fixed recipe of a profile is called."""
    return f"{profile.label} fixed"


def _contender(profile: Profile, runs: Runs) -> Contender:
    return Contender(profile=profile, queries=runs[legs_key(profile)])


def _summary(
    found: Study, profile: Profile, baselines: Baselines, runs: Runs, plan: TuningPlan, started: float
) -> Tuning:
    queries = found.data.queries
    baseline = _contender(baselines.baseline, runs)
    held_out, fixed, live = found.held_out[SHARES[-1]], baseline.fixed(), baseline.adaptive()
    trial = trial_of(queries, held_out, fixed, live if baselines.live is not None else None)
    gate = judge(
        trial,
        candidate=profile,
        baseline=fixed_name(baselines.baseline),
        live=None if baselines.live is None else baselines.live.label,
        folds=len(found.parts),
        seed=plan.seed,
    )
    systems: dict[str, Floats] = {
        "equal weights": baseline.equal(),
        fixed_name(baselines.baseline): fixed,
        baselines.baseline.label: live,
        baselines.base.label: _contender(baselines.base, runs).adaptive(),
        HELD_OUT: held_out,
    }
    return Tuning(
        label=None,
        base=baselines.base.label,
        improved=found.final.settings is not None,
        profile=profile,
        settings=found.final.settings,
        fold_settings=[each.settings for each in found.fits],
        sets=_sizes(queries),
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


def _sizes(queries: Sequence[SavedQuery]) -> dict[str, int]:
    names, counts = np.unique([query.set for query in queries], return_counts=True)
    return {str(name): int(count) for name, count in zip(names, counts, strict=True)}
