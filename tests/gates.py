"""Gate reports for tests of their consequences."""

from __future__ import annotations

from datetime import UTC, datetime

from retrieval.profiles.gate import GateReport, PairedComparison, fixed_name
from retrieval.profiles.profile import Profile


def report_on(profile: Profile, *, passed: bool = True, live: str = "default@3") -> GateReport:
    """A report on exactly these parameters, against the live version."""
    same = PairedComparison(
        n=60, candidate=0.5, baseline=0.5, difference=0.0, low=-0.1, high=0.1, p=1.0, wins=5, ties=50, losses=5
    )
    return GateReport(
        passed=passed,
        candidate=profile.label,
        candidate_sha256=profile.fingerprint,
        baseline=fixed_name(live),
        n=60,
        folds=0,
        seed=1,
        measure="ndcg@10",
        overall=same,
        intents={},
        reasons=[] if passed else ["it is worse on preference"],
        created_at=datetime(2026, 2, 3, tzinfo=UTC),
    )
