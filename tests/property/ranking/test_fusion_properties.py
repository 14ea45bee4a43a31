"""Invariants of fusion, for any rankings and weights."""

from math import fsum

from hypothesis import given
from hypothesis import strategies as st

import trivet
from retrieval.types.search import Leg
from tests.rankings import weighted_rrf

IDS = st.lists(st.sampled_from("abcdefghij"), unique=True)
RANKINGS = st.fixed_dictionaries(dict.fromkeys(Leg, IDS))
WEIGHTS = st.fixed_dictionaries(dict.fromkeys(Leg, st.floats(0.0, 10.0).map(lambda weight: round(weight, 3))))
K = st.integers(1, 1_000)

Rankings = dict[Leg, list[str]]
Weights = dict[Leg, float]


@given(RANKINGS, WEIGHTS, K, st.permutations(list(Leg)))
def test_the_order_of_the_legs_does_not_matter(rankings: Rankings, weights: Weights, k: int, order: list[Leg]) -> None:
    assert weighted_rrf({leg: rankings[leg] for leg in order}, weights, rrf_k=k) == weighted_rrf(
        rankings, weights, rrf_k=k
    )


@given(RANKINGS, WEIGHTS, K, st.integers(-20, 20))
def test_scaling_all_weights_does_not_change_the_order(
    rankings: Rankings, weights: Weights, k: int, power: int
) -> None:
    """By powers of 2, which floating point scales exactly."""
    scaled = {leg: weight * 2.0**power for leg, weight in weights.items()}
    before = weighted_rrf(rankings, weights, rrf_k=k)
    after = weighted_rrf(rankings, scaled, rrf_k=k)
    assert [one.id for one in after] == [one.id for one in before]


@given(RANKINGS, WEIGHTS, K)
def test_every_id_of_a_leg_that_counts_is_there_once_and_sorted(rankings: Rankings, weights: Weights, k: int) -> None:
    fused = weighted_rrf(rankings, weights, rrf_k=k)
    assert sorted(one.id for one in fused) == sorted({id for leg in Leg if weights[leg] for id in rankings[leg]})
    assert fused == sorted(fused, key=lambda one: (-one.score, one.id))
    assert all(one.score == fsum(weights[leg] / (k + rankings[leg].index(one.id) + 1) for leg in Leg
               if one.id in rankings[leg]) for one in fused)  # fmt: skip


@given(RANKINGS, WEIGHTS, K, st.sampled_from(list(Leg)), st.data())
def test_a_better_rank_never_lowers_a_memory(
    rankings: Rankings, weights: Weights, k: int, leg: Leg, data: st.DataObject
) -> None:
    if not rankings[leg] or not weights[leg]:
        return
    id = data.draw(st.sampled_from(rankings[leg]))
    promoted = {**rankings, leg: [id, *(other for other in rankings[leg] if other != id)]}
    places = [
        [one.id for one in weighted_rrf(given_rankings, weights, rrf_k=k)].index(id)
        for given_rankings in (rankings, promoted)
    ]
    assert places[1] <= places[0]


@given(RANKINGS, st.fixed_dictionaries(dict.fromkeys(Leg, st.floats(0.0, 1e9))), st.floats(1e-3, 1e3))
def test_a_score_is_the_sum_rounded_once(rankings: Rankings, weights: Weights, k: float) -> None:
    """To the last bit, over the legs that have it; ties are in the order of their ids."""
    scores = {
        id: fsum(weights[leg] / (k + (ranking.index(id) + 1)) for leg, ranking in rankings.items() if id in ranking)
        for id in {id for leg, ranking in rankings.items() if weights[leg] for id in ranking}
    }
    fused = weighted_rrf(rankings, weights, rrf_k=k)
    assert [(one.id, one.score) for one in fused] == sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    own = trivet.weighted_rrf([*rankings.values()], [weights[leg] for leg in rankings], rrf_k=k)
    assert [*own.items()] == fused
