"""Measures and intervals: hand-computed values, and ranx as the oracle."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from math import log2

import numpy as np
import pytest

from retrieval.evaluation.metrics import measures, ndcg, recall, reciprocal_rank
from retrieval.significance import PairedTest, bootstrap, compare, holm
from tests.processes import python


def test_ndcg_of_binary_grades_by_hand() -> None:
    """Relevant at ranks 2 and 4 of two relevant in all."""
    expected = (1 / log2(3) + 1 / log2(5)) / (1 / log2(2) + 1 / log2(3))
    assert ndcg(["x", "a", "y", "b"], {"a": 1, "b": 1}, cutoff=10) == pytest.approx(expected)


def test_ndcg_of_graded_relevance_by_hand() -> None:
    """The gain is the grade itself, not two to its power."""
    expected = (1 / log2(2) + 3 / log2(3)) / (3 / log2(2) + 1 / log2(3))
    assert ndcg(["b", "a"], {"a": 3, "b": 1}, cutoff=10) == pytest.approx(expected)


def test_ndcg_ideal_is_cut_too() -> None:
    """With more relevant ids than places a full list of relevant ids is perfect."""
    grades = dict.fromkeys("abcdef", 1)
    assert ndcg(list("abc"), grades, cutoff=3) == 1.0
    assert ndcg(list("xyz"), grades, cutoff=3) == 0.0


def test_recall_and_reciprocal_rank_by_hand() -> None:
    """Two of three relevant ids among the first four, the first at rank 3."""
    ranking, grades = ["x", "y", "a", "b", "c"], {"a": 1, "b": 1, "c": 2}
    assert recall(ranking, grades, cutoff=4) == pytest.approx(2 / 3)
    assert reciprocal_rank(ranking, grades, cutoff=10) == pytest.approx(1 / 3)
    assert reciprocal_rank(ranking, grades, cutoff=2) == 0.0


def test_grade_zero_is_not_relevant() -> None:
    """A judged but irrelevant id counts for nothing."""
    assert recall(["a"], {"a": 0, "b": 1}, cutoff=5) == 0.0
    assert reciprocal_rank(["a", "b"], {"a": 0, "b": 1}, cutoff=5) == 0.5
    assert ndcg(["a"], {"a": 0}, cutoff=5) == 0.0


ORACLE = """
import json, sys
import ranx
qrels, run, names = json.load(sys.stdin)
print(json.dumps({k: float(v) for k, v in ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), names).items()}))
"""


def test_measures_agree_with_ranx() -> None:
    """Random rankings and grades: every reported measure equals ranx's to 1e-9.

    ranx runs in a separate process, uncompiled: compiling takes most of a minute.
    """
    rng = random.Random(7)
    ids = [f"d{i}" for i in range(60)]
    qrels = {f"q{q}": {i: rng.randint(1, 3) for i in rng.sample(ids, rng.randint(1, 15))} for q in range(40)}
    rankings = {qid: rng.sample(ids, 30) for qid in qrels}
    run = {qid: {id_: 1.0 / rank for rank, id_ in enumerate(r, start=1)} for qid, r in rankings.items()}
    chosen = measures(10)
    given = json.dumps([qrels, run, list(chosen)])
    oracle = json.loads(python("-W", "ignore", "-c", ORACLE, stdin=given, NUMBA_DISABLE_JIT="1").stdout)
    for name, measure in chosen.items():
        mean = np.mean([measure(rankings[qid], qrels[qid]) for qid in qrels])
        assert mean == pytest.approx(oracle[name], abs=1e-9), name


def test_longer_rankings_gain_a_deeper_recall() -> None:
    """recall@100 is only reported where 100 results were asked for."""
    assert "recall@100" in measures(100)
    assert "recall@100" not in measures(99)


def test_bootstrap_matches_the_normal_interval_of_a_large_sample() -> None:
    """For 2,000 values the bounds lie within a tenth of mean +- 1.96 standard errors."""
    values = np.random.default_rng(1).normal(0.5, 0.2, size=2_000)
    found = bootstrap(values[:, None], ["all"] * 2_000, seed=3)[0]
    error = values.std(ddof=1) / np.sqrt(2_000)
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_bootstrap_of_small_strata_is_as_wide_as_their_standard_error() -> None:
    """Fifty strata of the scores 0 and 1: each mean has the variance .5 / 2, theirs a fiftieth of it."""
    strata = [name for number in range(50) for name in [f"s{number}"] * 2]
    found = bootstrap(np.array([[0.0], [1.0]] * 50), strata, seed=2)[0]
    error = np.sqrt(0.5 / 2 / 50)
    assert found.mean == 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_bootstrap_is_seeded() -> None:
    """The same seed gives the same bounds, another seed others."""
    values = np.random.default_rng(1).random((50, 2))
    strata = ["all"] * 50
    assert bootstrap(values, strata, seed=5) == bootstrap(values, strata, seed=5)
    assert bootstrap(values, strata, seed=5) != bootstrap(values, strata, seed=6)


def test_macro_mean_weighs_strata_equally() -> None:
    """Three queries of score 1 in one namespace and one of 0 in another: 0.5, not 0.75."""
    values = np.array([[1.0], [1.0], [1.0], [0.0]])
    found = bootstrap(values, ["a", "a", "a", "b"], seed=0)[0]
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


def paired(a: Sequence[float], b: Sequence[float], sets: str = "") -> PairedTest:
    """One system against another on queries of the sets named, a letter each."""
    (found,) = compare(np.array([a]).T, np.array([b]).T, list(sets or "s" * len(a)), seed=0)
    return found


def test_paired_test_of_equal_systems_finds_nothing() -> None:
    """No difference in any query: p is 1."""
    found = paired([0.2, 0.4, 0.9], [0.2, 0.4, 0.9])
    assert found.p_value == 1.0
    assert (found.queries, found.wins, found.ties, found.losses) == (3, 0, 3, 0)


def test_paired_test_by_hand() -> None:
    """Ten wins of the same size: all signs agree in 2 of 2**10 flips, p about 0.00195."""
    found = paired([1.0] * 10, [0.0] * 10)
    assert found.p_value == pytest.approx(2 / 2**10, abs=0.0015)
    assert found.difference.mean == 1.0
    assert (found.wins, found.ties, found.losses) == (10, 0, 0)


def test_paired_test_counts_every_set_alike() -> None:
    """Differences .4 in one set, .1 and .1 in another: mean .25, reached again in 2 of the 8 flips only.

    If every query counted alike it would be .2. The flip of one .1 leaves .2, that of .4 -.15.
    """
    found = paired([0.4, 0.1, 0.1], [0.0, 0.0, 0.0], "abb")
    assert found.difference.mean == pytest.approx(0.25)
    assert found.p_value == pytest.approx(2 / 8, abs=0.015)


def test_a_loss_is_as_improbable_as_a_win() -> None:
    """The test is two-sided; differences -3, 1, 1, 1 sum to 0, which every flip reaches."""
    assert paired([0.0] * 6, [1.0] * 6).p_value == paired([1.0] * 6, [0.0] * 6).p_value
    found = paired([0.0, 0.4, 0.4, 0.4], [0.6, 0.2, 0.2, 0.2])
    assert (found.p_value, found.wins, found.losses) == (1.0, 3, 1)


def test_columns_are_compared_at_once_as_each_alone() -> None:
    """They share resamples and flips."""
    rng = np.random.default_rng(4)
    a, b = rng.random((30, 2)), rng.random((30, 2))
    both = compare(a, b, ["s"] * 30, seed=9)
    (alone,) = compare(a[:, 1:], b[:, 1:], ["s"] * 30, seed=9)
    assert both[1].p_value == alone.p_value
    assert both[1].difference.low == pytest.approx(alone.difference.low)


def test_holm_by_hand() -> None:
    """The smallest times 4, the next times 3, then 2, then 1, and none below one before it."""
    assert holm([0.02, 0.01, 0.04, 0.03]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_never_falls_and_never_passes_one() -> None:
    """Corrected values keep the order of the raw ones and stay at most 1."""
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
