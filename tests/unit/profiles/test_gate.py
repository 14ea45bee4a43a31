"""The never-worse gate: what it passes, what it refuses, and why."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from retrieval.profiles.gate import GateReport, Trial, judge
from retrieval.profiles.profile import DEFAULT

CANDIDATE = replace(DEFAULT, name="mine", version=2, learned_share=0.5)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def report(
    candidate: list[float],
    baseline: list[float],
    *,
    intents: list[str] | None = None,
    live: list[float] | None = None,
    sets: list[str] | None = None,
    weights: list[float] | None = None,
) -> GateReport:
    """The gate's report on these scores."""
    trial = Trial(
        sets=sets or ["toy"] * len(candidate),
        intents=intents or ["fact_lookup"] * len(candidate),
        candidate=np.array(candidate),
        baseline=np.array(baseline),
        live=None if live is None else np.array(live),
        weights=None if weights is None else np.array(weights),
    )
    return judge(
        trial,
        candidate=CANDIDATE,
        baseline="default@3 fixed",
        live="mine@1" if live else None,
        folds=5,
        seed=0,
        now=NOW,
    )


def test_as_good_is_good_enough() -> None:
    """It requires not worse, not better; the report says what was measured."""
    found = report([0.5] * 60, [0.5] * 60)
    assert (found.passed, found.reasons, found.n, found.folds) == (True, [], 60, 5)
    assert (found.candidate, found.candidate_sha256) == ("mine@2", CANDIDATE.fingerprint)
    assert (found.overall.wins, found.overall.ties, found.overall.losses) == (0, 60, 0)
    assert msgspec.json.decode(msgspec.json.encode(found), type=GateReport) == found


def test_a_lower_mean_is_refused_however_unsure() -> None:
    """One lost query of sixty is chance, and still not "not worse"."""
    found = report([0.0] + [0.5] * 59, [0.1] + [0.5] * 59)
    assert not found.passed
    assert found.overall.p > 0.05
    assert "0.0017 below that of default@3 fixed" in found.reasons[0]


def test_a_significant_loss_on_one_intent_is_refused_though_the_mean_rises() -> None:
    intents = ["fact_lookup"] * 80 + ["preference"] * 20
    found = report([0.9] * 80 + [0.4] * 20, [0.5] * 80 + [0.5] * 20, intents=intents)
    assert found.overall.difference > 0
    assert not found.passed
    assert found.reasons == [
        "on the 20 queries of intent preference it is significantly worse than default@3 fixed "
        "(0.4000 against 0.5000, p = 0.000)"
    ]


def test_an_insignificant_loss_on_one_intent_passes() -> None:
    """Three queries show nothing."""
    intents = ["fact_lookup"] * 80 + ["preference"] * 3
    assert report([0.9] * 80 + [0.4] * 3, [0.5] * 83, intents=intents).passed


def test_few_queries_are_refused() -> None:
    assert report([0.9] * 49, [0.1] * 49).reasons == ["49 queries have relevant memories; the gate wants at least 50"]
    assert report([0.9], [0.1]).reasons == ["1 query has relevant memories; the gate wants at least 50"]
    assert report([0.9] * 50, [0.1] * 50).passed


def test_the_live_version_counts_as_it_answers() -> None:
    """Better than the fixed recipe, worse than what is live: refused."""
    found = report([0.6] * 60, [0.5] * 60, live=[0.7] * 60)
    assert not found.passed
    assert found.against_live is not None
    assert found.against_live.difference == pytest.approx(-0.1)
    assert all("mine@1" in reason for reason in found.reasons)
    assert report([0.6] * 60, [0.5] * 60, live=[0.55] * 60).passed


def test_every_set_counts_alike() -> None:
    """A small set's loss outweighs a large set's smaller gain."""
    found = report([0.6] * 90 + [0.2] * 10, [0.5] * 90 + [0.5] * 10, sets=["large"] * 90 + ["small"] * 10)
    assert found.overall.difference == pytest.approx((0.1 - 0.3) / 2)
    assert not found.passed


def test_weights_say_what_a_query_counts() -> None:
    """A query of weight 9 is worth nine of weight 1."""
    scores, base = [1.0] * 30 + [0.0] * 30, [0.5] * 60
    found = report(scores, base, weights=[9.0] * 30 + [1.0] * 30)
    assert found.overall.candidate == pytest.approx(0.9)
    assert found.overall.baseline == pytest.approx(0.5)
    assert found.overall.difference == pytest.approx(0.4)


def test_the_same_seed_gives_the_same_report() -> None:
    rng = np.random.default_rng(1)
    scores, base = rng.random(80).tolist(), rng.random(80).tolist()
    assert report(scores, base) == report(scores, base)


def test_scores_must_be_there_for_every_query() -> None:
    with pytest.raises(ValueError, match="a trial needs at least one query"):
        report([], [])
    with pytest.raises(ValueError, match="every one"):
        report([0.5] * 60, [0.5] * 59)
