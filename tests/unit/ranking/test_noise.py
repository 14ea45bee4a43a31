"""The part of a leg's ranking that is noise is cut."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from retrieval.index.terms import Postings
from retrieval.legs.base import LegRanking
from retrieval.legs.bm25_scoring import TermQuery
from retrieval.profiles.profile import DEFAULT
from retrieval.ranking.noise import cut_noise, truncate
from retrieval.types.search import Leg
from tests.rankings import ranking_of

PROFILE = replace(DEFAULT, vector_noise=0.2, bm25_noise=0.5)
TERMS = TermQuery.from_postings(Postings({}, 3, 30), [7])


def ranking(*scores: float) -> LegRanking:
    hits = ((f"m{at:02}", at, score) for at, score in enumerate(scores))
    return ranking_of(hits, details={"of": "tests"}, terms=TERMS, entity_idfs=(0.5,))


def left(rankings: Mapping[Leg, LegRanking]) -> dict[Leg, list[float]]:
    return {leg: [hit.score for hit in each.hits] for leg, each in rankings.items()}


def test_each_leg_is_cut_by_its_own_measure() -> None:
    """The vector leg by distance from its best cosine, BM25 by share of its best score, the graph leg not at all."""
    rankings = {
        Leg.VECTOR: ranking(0.75, 0.625, 0.56, 0.54, -0.1),
        Leg.BM25: ranking(12.0, 6.0, 5.9, 0.1),
        Leg.GRAPH: ranking(1.0, 0.01, 0.0001),
    }
    assert left(cut_noise(rankings, PROFILE, enough=1)) == {
        Leg.VECTOR: [0.75, 0.625, 0.56],
        Leg.BM25: [12.0, 6.0],
        Leg.GRAPH: [1.0, 0.01, 0.0001],
    }


def test_bm25_is_not_cut_above_what_holds_an_identifier_of_the_query() -> None:
    """The other legs are, as they cannot read it."""
    rankings = {Leg.VECTOR: ranking(0.9, 0.5, 0.1), Leg.BM25: ranking(12.0, 3.0, 2.0, 1.0)}
    for identified, scores in (({2}, [12.0, 3.0, 2.0]), ({0, 1}, [12.0, 3.0]), ({0}, [12.0]), ({9}, [12.0])):
        cut = cut_noise(rankings, PROFILE, enough=1, identified=identified)
        assert left(cut) == {Leg.VECTOR: [0.9], Leg.BM25: scores}


@pytest.mark.parametrize("leg", list(Leg))
def test_a_leg_alone_is_heard_out(leg: Leg) -> None:
    alone = {leg: ranking(0.9, 0.1, 0.01)}
    assert cut_noise(alone, PROFILE, enough=1) == alone


def test_what_else_a_ranking_holds_stays() -> None:
    cut = cut_noise({Leg.BM25: ranking(2.0, 0.5), Leg.GRAPH: ranking(0.5)}, PROFILE, enough=1)
    for leg, expected in {Leg.BM25: ranking(2.0), Leg.GRAPH: ranking(0.5)}.items():
        for name in ("hits", "details", "terms", "entity_idfs", "paths"):
            assert getattr(cut[leg], name) == getattr(expected, name)
    assert cut.keys() == {Leg.BM25, Leg.GRAPH}


def test_a_leg_that_alone_found_anything_is_heard_out() -> None:
    rankings = {Leg.BM25: ranking(2.0, 0.5), Leg.GRAPH: ranking()}
    assert cut_noise(rankings, PROFILE, enough=1) == rankings


@pytest.mark.parametrize("best", [-0.4, 0.0, 1.0])
def test_the_best_stays_whatever_the_profile(best: float) -> None:
    """As do those that are as good."""
    strict = replace(DEFAULT, vector_noise=0.0, bm25_noise=1.0)
    rankings = {Leg.VECTOR: ranking(best, best, best - 0.01), Leg.BM25: ranking(3.0, 3.0, 2.99)}
    assert left(cut_noise(rankings, strict, enough=1)) == {Leg.VECTOR: [best, best], Leg.BM25: [3.0, 3.0]}


SCORES = st.lists(st.floats(-1, 1), max_size=30).map(lambda scores: sorted(scores, reverse=True))


@given(SCORES, SCORES, SCORES, st.floats(0, 2), st.floats(0, 1))
def test_what_is_left_is_the_head_of_a_ranking(
    vector: list[float], bm25: list[float], graph: list[float], vector_noise: float, bm25_noise: float
) -> None:
    """It is a prefix, and only empty if there was nothing; a wider profile keeps more."""
    rankings = {
        Leg.VECTOR: ranking(*vector),
        Leg.BM25: ranking(*(5 * abs(score) for score in sorted(bm25, key=abs, reverse=True))),
        Leg.GRAPH: ranking(*map(abs, sorted(graph, key=abs, reverse=True))),
    }
    profile = replace(DEFAULT, vector_noise=vector_noise, bm25_noise=bm25_noise)
    cut = cut_noise(rankings, profile, enough=1)
    wide = cut_noise(rankings, replace(DEFAULT, vector_noise=vector_noise + 0.1, bm25_noise=bm25_noise / 2), enough=1)
    assert cut.keys() == rankings.keys()
    for leg, whole in rankings.items():
        assert cut[leg].hits == whole.hits[: len(cut[leg].hits)]
        assert bool(cut[leg].hits) == bool(whole.hits)
        assert len(wide[leg].hits) >= len(cut[leg].hits)


def test_an_answer_is_not_cut_short_for_the_sake_of_noise() -> None:
    rankings = {Leg.VECTOR: ranking(0.9, 0.1), Leg.BM25: ranking(2.0, 0.5)}
    assert left(cut_noise(rankings, PROFILE, enough=1)) != left(rankings)
    assert cut_noise(rankings, PROFILE, enough=3) == rankings


@given(SCORES, SCORES, st.integers(1, 40))
def test_heads_are_the_best_of_each_ranking(vector: list[float], bm25: list[float], length: int) -> None:
    rankings = {Leg.VECTOR: ranking(*vector), Leg.BM25: ranking(*bm25)}
    cut = truncate(rankings, length)
    assert left(cut) == {Leg.VECTOR: vector[:length], Leg.BM25: bm25[:length]}
    assert cut[Leg.BM25].terms is rankings[Leg.BM25].terms
