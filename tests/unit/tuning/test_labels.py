"""Gains from feedback, with clicks corrected for the memory's rank."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import numpy as np
import pytest
from msgspec.structs import replace

from retrieval.errors import InvalidInput
from retrieval.profiles.profile import Recipe
from retrieval.tuning.labels import gained_of, labelled_searches
from retrieval.tuning.runs import SavedQuery
from retrieval.tuning.search import Fitter, data_of
from retrieval.types.journal import Feedback
from retrieval.types.search import Leg
from tests.tuned import BASE, ranking, saved

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def judged(
    number: int = 1,
    *,
    shown: tuple[str, ...] = ("a", "b", "c"),
    relevant: frozenset[str] = frozenset(),
    irrelevant: frozenset[str] = frozenset(),
    clicked: frozenset[str] = frozenset(),
    ratings: dict[str, float] | None = None,
) -> Feedback:
    """Feedback on a search."""
    return Feedback(
        id=f"f{number}",
        at=NOW,
        query=f"question {number}",
        shown=list(shown),
        relevant=sorted(relevant),
        irrelevant=sorted(irrelevant),
        clicked=sorted(clicked),
        ratings=ratings or {},
        intent=None,
        profile=None,
        search_id=None,
        filters=None,
        as_of=None,
        query_timestamp=None,
    )


def test_a_click_counts_the_inverse_of_how_likely_its_place_is_looked_at() -> None:
    """At the third rank it counts 3 with (1/rank)^1, at the first 1; the greatest is the search's weight."""
    gained = gained_of(judged(clicked=frozenset({"a", "c"})), position_bias=1.0)
    assert gained.gains == {"a": pytest.approx(1 / 3), "c": 1.0}
    assert gained.weight == 3.0
    assert gained_of(judged(clicked=frozenset({"c"})), position_bias=2.0).weight == 9.0
    assert gained_of(judged(clicked=frozenset({"c"})), position_bias=0.0).weight == 1.0


def test_a_click_is_clipped_at_ten() -> None:
    shown = tuple(f"m{number}" for number in range(50))
    assert gained_of(judged(shown=shown, clicked=frozenset({"m40"})), position_bias=1.0).weight == 10.0


def test_what_is_said_outweighs_a_click() -> None:
    """Irrelevant gains 0, a rating its value; a memory without a click is no evidence."""
    said = judged(
        clicked=frozenset({"a", "b"}),
        irrelevant=frozenset({"b"}),
        relevant=frozenset({"x"}),
        ratings={"a": 0.5, "y": 0.0},
    )
    gained = gained_of(said, position_bias=1.0)
    assert gained.gains == {"a": 0.5, "x": 1.0}
    assert gained.weight == 1.0
    assert gained_of(judged(irrelevant=frozenset({"a"})), position_bias=1.0).gains == {}


@pytest.mark.parametrize(("searches", "positive"), [(49, 49), (80, 29), (0, 0)])
def test_too_little_is_refused_in_numbers(searches: int, positive: int) -> None:
    found = [
        judged(n, relevant=frozenset({"a"})) if n < positive else judged(n, irrelevant=frozenset({"a"}))
        for n in range(searches)
    ]
    with pytest.raises(InvalidInput, match=rf"on {searches} searches, {positive} of them .* at least 50, 30"):
        labelled_searches(found, "chat", position_bias=1.0)


def test_searches_with_nothing_positive_are_left_out() -> None:
    found = [judged(n, relevant=frozenset({"a"})) for n in range(30)]
    found += [judged(n, irrelevant=frozenset({"a"})) for n in range(30, 50)]
    labelled = labelled_searches(found, "chat", position_bias=1.0)
    assert [each.query.id for each in labelled] == [f"f{n}" for n in range(30)]
    assert (labelled[0].set, labelled[0].searched, labelled[0].query.text) == ("chat", "chat", "question 0")
    assert labelled[0].query.asked_at == NOW  # "yesterday" is the day before it was judged


def test_searches_whose_judged_memories_are_gone_do_not_count() -> None:
    with pytest.raises(InvalidInput, match="on 49 searches, 49 of them"):
        labelled_searches([judged(n, relevant=frozenset("a" if n else "")) for n in range(50)], "chat", position_bias=1)


def clicked_searches(position_bias: float) -> list[SavedQuery]:
    """Searches whose answers favoured the vector leg, as their clicks tell of them.

    For two in five the vector leg is right and the relevant memory was shown first; for three in five BM25 is, and
    it was shown at rank 9. Users look at a rank with probability 1 / rank, and click a relevant memory there.
    """
    rng = random.Random(0)
    queries = []
    for number in range(600):
        right, place = (Leg.VECTOR, 1) if number % 5 < 2 else (Leg.BM25, 9)
        if rng.random() >= 1 / place:
            continue
        shown = tuple("gold" if at == place else f"s{at}" for at in range(1, 11))
        gained = gained_of(judged(number, shown=shown, clicked=frozenset({"gold"})), position_bias=position_bias)
        queries.append(
            saved(
                number,
                vector=ranking(12, 1 if right is Leg.VECTOR else None, "a"),
                bm25=ranking(12, 1 if right is Leg.BM25 else None, "b"),
                gains=gained.gains,
                weight=gained.weight,
            )
        )
    return queries


@pytest.mark.parametrize(("position_bias", "better"), [(1.0, Leg.BM25), (0.0, Leg.VECTOR)])
def test_clicks_corrected_for_their_places_find_the_better_leg(position_bias: float, better: Leg) -> None:
    """BM25 is right more often, and uncorrected clicks suggest the opposite."""
    queries = clicked_searches(position_bias)
    even = Recipe(weights={Leg.VECTOR: 0.45, Leg.BM25: 0.45, Leg.GRAPH: 0.1}, rrf_k=5, fan_out=40)
    fitter = Fitter(data_of(queries, replace(BASE, fixed=even)), np.arange(len(queries)))
    weights = fitter.fixed.weights
    worse = Leg.VECTOR if better is Leg.BM25 else Leg.BM25
    assert weights[better] > weights[worse]
