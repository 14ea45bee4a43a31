"""Caps of sources, and maximal marginal relevance by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.ranking.diversity import cap_sources, maximal_marginal_relevance, source_of


@pytest.mark.parametrize(
    ("document_id", "session_id", "expected"),
    [
        ("d", "s", ("document", "d")),
        ("", "s", ("session", "s")),
        (None, "s", ("session", "s")),
        ("", "", None),
        (None, None, None),
    ],
)
def test_a_document_or_session_without_a_name_is_none(
    document_id: str | None, session_id: str | None, expected: tuple[str, str] | None
) -> None:
    """As the first versions stored them."""
    assert source_of(document_id, session_id) == expected


def capped(ranked: str, cap: int | None, top_k: int) -> str:
    """Of memories like "a1", named by source and number; "-" is no source."""
    order = cap_sources(ranked.split(), lambda one: None if one[0] == "-" else one[0], cap=cap, top_k=top_k)
    return " ".join(order)


@pytest.mark.parametrize(
    ("ranked", "cap", "top_k", "expected"),
    [
        ("a1 a2 a3 b1 c1", 1, 3, "a1 b1 c1 a2 a3"),
        ("a1 a2 a3 b1 c1", 2, 3, "a1 a2 b1 a3 c1"),
        ("a1 a2 a3 b1 c1", 3, 3, "a1 a2 a3 b1 c1"),
        ("a1 a2 a3 b1 c1", None, 3, "a1 a2 a3 b1 c1"),
        ("a1 a2 a3", 1, 3, "a1 a2 a3"),
        ("a1 a2 a3 b1", 1, 3, "a1 b1 a2 a3"),
        ("-1 -2 a1 a2 -3", 1, 4, "-1 -2 a1 -3 a2"),
        ("a1 a2 b1", 1, 0, "a1 a2 b1"),
        ("a1 a2 b1", 1, 1, "a1 a2 b1"),
        ("a1 a2 b1", 1, 9, "a1 b1 a2"),
        ("", 1, 3, ""),
    ],
)
def test_what_is_over_the_cap_gives_way_to_what_follows(
    ranked: str, cap: int | None, top_k: int, expected: str
) -> None:
    assert capped(ranked, cap, top_k) == expected


@pytest.mark.parametrize(("cap", "top_k", "complaint"), [(0, 3, "cap is 0"), (-1, 3, "cap is -1"), (1, -1, "top_k is")])
def test_caps_that_make_no_sense_are_refused(cap: int, top_k: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        capped("a1", cap, top_k)


RELEVANCE = np.array([0.9, 0.8, 0.6, 0.1])
VECTORS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
    ("diversity", "expected"),
    [
        (0.0, [0, 1, 2, 3]),
        # Scaled relevance 1, 7/8, 5/8, 0; similarities to 0: .8, 0, -1; to 1: .6, -.8; to 2: 0.
        # .25: .656 - .200, .469 - 0, 0 + .25 -> 2; then .656 - .25 * .8, 0 - .25 * 0 -> 1
        (0.25, [0, 2, 1, 3]),
        # .5: .4375 - .4, .3125 - 0, 0 + .5 -> 3; then .0375, .3125 - 0 -> 2
        (0.5, [0, 3, 2, 1]),
        (1.0, [0, 3, 2, 1]),
    ],
)
def test_relevance_is_traded_for_being_unlike(diversity: float, expected: list[int]) -> None:
    assert maximal_marginal_relevance(RELEVANCE, VECTORS, diversity=diversity, count=4) == expected


def test_a_count_takes_the_beginning() -> None:
    assert maximal_marginal_relevance(RELEVANCE, VECTORS, diversity=0.25, count=2) == [0, 2]
    assert maximal_marginal_relevance(RELEVANCE, VECTORS, diversity=0.25, count=0) == []
    assert maximal_marginal_relevance(RELEVANCE, VECTORS, diversity=0.25, count=99) == [0, 2, 1, 3]


def test_ties_go_to_the_earlier_place() -> None:
    same = np.tile([[0.6, 0.8]], (4, 1))
    assert maximal_marginal_relevance(np.ones(4), same, diversity=0.5, count=4) == [0, 1, 2, 3]


def test_nothing_is_chosen_from_nothing() -> None:
    assert maximal_marginal_relevance(np.empty(0), np.empty((0, 3)), diversity=0.5, count=3) == []


def test_vectors_of_half_precision_are_near_enough_to_unit() -> None:
    vectors = np.random.default_rng(7).normal(size=(20, 384))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    relevance = np.linspace(1, 0, 20, dtype=np.float32)
    chosen = maximal_marginal_relevance(relevance, vectors, diversity=0.3, count=20)
    assert sorted(chosen) == list(range(20))


@pytest.mark.parametrize(
    ("relevance", "vectors", "diversity", "count", "complaint"),
    [
        (RELEVANCE, VECTORS, -0.1, 4, "diversity is -0.1"),
        (RELEVANCE, VECTORS, 1.1, 4, "diversity is 1.1"),
        (RELEVANCE, VECTORS, float("nan"), 4, "diversity is nan"),
        (RELEVANCE, VECTORS, 0.5, -1, "count is -1"),
        (RELEVANCE[:3], VECTORS, 0.5, 4, "shape"),
        (RELEVANCE, VECTORS[:, 0], 0.5, 4, "shape"),
        (RELEVANCE[::-1], VECTORS, 0.5, 4, "best first"),
        (np.array([np.nan] * 4), VECTORS, 0.5, 4, "finite"),
        (RELEVANCE, VECTORS * 2, 0.5, 4, "length 1"),
        (RELEVANCE, np.zeros((4, 2)), 0.5, 4, "length 1"),
        (RELEVANCE, np.full((4, 2), np.nan), 0.5, 4, "length 1"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(
    relevance: NDArray[np.float64], vectors: NDArray[np.float64], diversity: float, count: int, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        maximal_marginal_relevance(relevance, vectors, diversity=diversity, count=count)
