"""Invariants of source caps and marginal relevance, for any ranking."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retrieval.ranking.diversity import cap_sources, maximal_marginal_relevance

RANKED = st.lists(st.none() | st.sampled_from("abc"), max_size=20).map(lambda sources: list(enumerate(sources)))
CAPS = st.integers(1, 6)
TOP_K = st.integers(0, 25)

Ranked = list[tuple[int, str | None]]
Choice = tuple[NDArray[np.float64], NDArray[np.float64]]


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    """Relevance, best first, and unit vectors, many of them alike."""
    size = draw(st.integers(1, 12))
    scores = draw(st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size))
    angles = draw(st.lists(st.integers(0, 11), min_size=size, max_size=size))
    radians = np.array(angles) * np.pi / 6
    return np.array(sorted(scores, reverse=True)), np.stack([np.cos(radians), np.sin(radians)], axis=1)


CHOICES = choices()
DIVERSITY = st.floats(0, 1)


def source(one: tuple[int, str | None]) -> str | None:
    return one[1]


def per_source(ranked: Ranked) -> Counter[str]:
    return Counter(origin for _, origin in ranked if origin is not None)


@given(RANKED, CAPS, TOP_K)
def test_a_cap_loses_nothing_and_holds_while_others_follow(ranked: Ranked, cap: int, top_k: int) -> None:
    order = cap_sources(ranked, source, cap=cap, top_k=top_k)
    assert sorted(order) == ranked
    within = sum(min(count, cap) for count in per_source(ranked).values()) + sum(origin is None for _, origin in ranked)
    first = order[: min(top_k, within)]
    assert all(count <= cap for count in per_source(first).values())


@given(RANKED, CAPS, TOP_K)
def test_a_cap_keeps_the_order_within_a_source_and_among_those_it_does_not_move(
    ranked: Ranked, cap: int, top_k: int
) -> None:
    order = cap_sources(ranked, source, cap=cap, top_k=top_k)
    for origin in "abc":
        assert [one for one in order if one[1] == origin] == [one for one in ranked if one[1] == origin]
    assert [one for one in order if one[1] is None] == [one for one in ranked if one[1] is None]
    if all(count <= cap for count in per_source(ranked[:top_k]).values()):
        assert order == ranked


@given(RANKED, CAPS, TOP_K)
def test_a_cap_holds_for_good_once_applied(ranked: Ranked, cap: int, top_k: int) -> None:
    order = cap_sources(ranked, source, cap=cap, top_k=top_k)
    assert cap_sources(order, source, cap=cap, top_k=top_k) == order


@given(RANKED, TOP_K)
def test_no_cap_changes_nothing(ranked: Ranked, top_k: int) -> None:
    assert cap_sources(ranked, source, cap=None, top_k=top_k) == ranked


@given(CHOICES, DIVERSITY, st.integers(0, 15))
def test_a_choice_is_a_beginning_of_a_permutation_and_starts_with_the_best(
    choice: Choice, diversity: float, count: int
) -> None:
    size = len(choice[0])
    everything = maximal_marginal_relevance(*choice, diversity=diversity, count=size)
    assert sorted(everything) == list(range(size))
    assert everything[0] == 0
    assert maximal_marginal_relevance(*choice, diversity=diversity, count=count) == everything[:count]


@given(CHOICES)
def test_without_diversity_the_order_stays(choice: Choice) -> None:
    size = len(choice[0])
    assert maximal_marginal_relevance(*choice, diversity=0.0, count=size) == list(range(size))


@given(CHOICES, DIVERSITY)
def test_each_choice_is_as_good_as_any_other_by_the_formula(choice: Choice, diversity: float) -> None:
    """Against the formula written out, with room for rounding."""
    relevance, vectors = choice
    spread = relevance[0] - relevance[-1]
    scaled = (relevance - relevance[-1]) / spread if spread else np.zeros(len(relevance))
    chosen = maximal_marginal_relevance(relevance, vectors, diversity=diversity, count=len(relevance))
    for at in range(1, len(chosen)):

        def score(one: int, before: tuple[int, ...] = tuple(chosen[:at])) -> float:
            likeness = max(float(vectors[one] @ vectors[other]) for other in before)
            return float((1 - diversity) * scaled[one] - diversity * likeness)

        assert all(score(chosen[at]) >= score(other) - 1e-9 for other in chosen[at:])
