"""Weighted reciprocal rank fusion against numbers worked by hand and against ranx."""

import json
import math

import pytest

from retrieval.errors import FusionError
from retrieval.types.search import Leg
from tests.processes import python
from tests.rankings import weighted_rrf

RANKINGS = {Leg.VECTOR: ["a", "b", "c"], Leg.BM25: ["c", "a"], Leg.GRAPH: ["d"]}
ONES = dict.fromkeys(Leg, 1.0)

RANX = """
import json, sys
from ranx import Run
from ranx.fusion import rrf
rankings = json.loads(sys.argv[1]).values()
runs = [Run({"q": {id: 1.0 / rank for rank, id in enumerate(ranking, 1)}}) for ranking in rankings]
print(json.dumps({id: float(score) for id, score in rrf(runs, k=60).to_dict()["q"].items()}))
"""


def test_scores_are_the_formula_worked_by_hand() -> None:
    fused = weighted_rrf(RANKINGS, {Leg.VECTOR: 0.5, Leg.BM25: 2.0, Leg.GRAPH: 1.0})
    scores = {one.id: one.score for one in fused}
    assert scores["a"] == pytest.approx(0.5 / 61 + 2.0 / 62, abs=1e-15)
    assert scores["b"] == pytest.approx(0.5 / 62, abs=1e-15)
    assert scores["c"] == pytest.approx(0.5 / 63 + 2.0 / 61, abs=1e-15)
    assert scores["d"] == pytest.approx(1.0 / 61, abs=1e-15)
    assert [one.id for one in fused] == ["c", "a", "d", "b"]


def test_unit_weights_agree_with_ranx() -> None:
    """In a separate process, where ranx need not be compiled (20 s) and may warn."""
    done = python("-W", "ignore", "-c", RANX, json.dumps(RANKINGS), NUMBA_DISABLE_JIT="1")
    actual = {one.id: one.score for one in weighted_rrf(RANKINGS, ONES)}
    assert actual == pytest.approx(json.loads(done.stdout))


def test_a_smaller_rrf_k_favours_the_top() -> None:
    """A first place in one leg beats two fourths at k=1, not at k=60."""
    rankings = {Leg.VECTOR: ["a", "x", "y", "b"], Leg.BM25: ["z", "v", "w", "b"]}
    assert weighted_rrf(rankings, ONES, rrf_k=1)[0].id == "a"
    assert weighted_rrf(rankings, ONES, rrf_k=60)[0].id == "b"


def test_ties_break_by_id() -> None:
    fused = weighted_rrf({Leg.VECTOR: ["b", "a"], Leg.BM25: ["a", "b"]}, ONES)
    assert [one.id for one in fused] == ["a", "b"]
    assert fused[0].score == fused[1].score


def test_a_leg_of_weight_zero_gives_no_place() -> None:
    fused = weighted_rrf({Leg.VECTOR: ["a"], Leg.GRAPH: ["b", "a"]}, {Leg.VECTOR: 1.0, Leg.GRAPH: 0.0})
    assert fused == weighted_rrf({Leg.VECTOR: ["a"]}, ONES)


@pytest.mark.parametrize("rankings", [{}, {Leg.BM25: []}])
def test_nothing_in_nothing_out(rankings: dict[Leg, list[str]]) -> None:
    assert weighted_rrf(rankings, ONES) == []


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_a_weight_that_is_no_weight_is_refused(weight: float) -> None:
    with pytest.raises(FusionError) as refused:
        weighted_rrf({Leg.BM25: ["a"]}, {Leg.BM25: weight})
    assert refused.value.loc == ("weights", "bm25")


def test_a_missing_weight_is_refused() -> None:
    with pytest.raises(FusionError, match="no weight for bm25"):
        weighted_rrf({Leg.BM25: ["a"]}, {Leg.VECTOR: 1.0})


@pytest.mark.parametrize("rrf_k", [0, -1])
def test_rrf_k_must_be_above_zero(rrf_k: int) -> None:
    with pytest.raises(FusionError) as refused:
        weighted_rrf({Leg.BM25: ["a"]}, ONES, rrf_k=rrf_k)
    assert refused.value.loc == ("rrf_k",)
