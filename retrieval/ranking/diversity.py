"""Diversity of one ranking: a cap per source, and maximal marginal relevance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

UNIT_TOLERANCE = 0.01
"""How far a unit vector's length may be from 1; rounding to half precision stays far below."""


def source_of(document_id: str | None, session_id: str | None) -> tuple[str, str] | None:
    """The document of a memory, otherwise its session; None if it has neither."""
    if document_id:
        return "document", document_id
    return ("session", session_id) if session_id else None


def cap_sources(ranked: Sequence[T], source: Callable[[T], Hashable | None], *, cap: int | None, top_k: int) -> list[T]:
    """Move items beyond the cap of their source behind the first `top_k`, while others can take their place.

    The order is otherwise kept: moved items come right after the first `top_k`, before everything that ranked lower.
    If too few others follow, the best of the items beyond the cap fill the first `top_k`. Returns every item of
    `ranked` once. `source` gives an item's document or session; items whose source is None are never capped. Raises
    ValueError for a cap below 1 (None for no cap), or `top_k` below 0.

    >>> cap_sources(["a1", "a2", "a3", "b1", "c1"], lambda one: one[0], cap=1, top_k=3)
    ['a1', 'b1', 'c1', 'a2', 'a3']
    >>> cap_sources(["a1", "a2", "a3", "b1"], lambda one: one[0], cap=1, top_k=3)
    ['a1', 'b1', 'a2', 'a3']
    """
    if cap is not None and cap < 1:
        raise ValueError(f"cap is {cap}, must be 1 or more, or None")
    if top_k < 0:
        raise ValueError(f"top_k is {top_k}, must not be negative")
    first: list[T] = []
    over: list[T] = []
    for item, is_within in zip(ranked, are_within(map(source, ranked), cap), strict=True):
        if len(first) == top_k:
            break
        (first if is_within else over).append(item)
    return [*first, *over, *ranked[len(first) + len(over) :]]


def are_within(sources: Iterable[Hashable | None], cap: int | None) -> Iterator[bool]:
    """Whether each item, given by its source, is among the first `cap` of its source; None as in `cap_sources`."""
    shown: Counter[Hashable | None] = Counter()
    for source in sources:
        shown[source] += 1
        yield cap is None or source is None or shown[source] <= cap


def maximal_marginal_relevance(
    relevance: NDArray[np.floating], vectors: NDArray[np.floating], *, diversity: float, count: int
) -> list[int]:
    """Choose items greedily by relevance and dissimilarity to those already chosen.

    score(i) = (1 - diversity) * relevance[i] - diversity * max over the chosen j of vectors[i] . vectors[j],
    with relevance scaled so that the worst is 0 and the best 1. MMR: Carbonell and Goldstein, SIGIR 1998,
    doi:10.1145/290941.291025.

    `relevance` has shape (n,), finite and best first; `vectors` (n, d), with unit rows. A `diversity` in [0, 1] of 0
    keeps the order, 1 goes by similarity alone after the first choice. Returns `count` indices into `relevance`, at
    most n, in the order chosen, the best first; ties go to the lower index. Raises ValueError for anything else.

    >>> vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> maximal_marginal_relevance(np.array([3.0, 2.0, 1.0]), vectors, diversity=0.5, count=2)
    [0, 2]
    """
    _check_choice(relevance, vectors, diversity, count)
    if not len(relevance):
        return []
    spread = float(relevance[0] - relevance[-1])
    gain = (1 - diversity) * (relevance - relevance[-1]) / (spread or 1.0)
    nearest = np.full(len(relevance), -np.inf)
    left = np.ones(len(relevance), dtype=np.bool_)
    chosen: list[int] = []
    best = 0
    while len(chosen) < min(count, len(relevance)):
        chosen.append(best)
        left[best] = False
        np.maximum(nearest, vectors @ vectors[best], out=nearest)
        best = int(np.argmax(np.where(left, gain - diversity * nearest, -np.inf)))
    return chosen


def _check_choice(relevance: NDArray[np.floating], vectors: NDArray[np.floating], diversity: float, count: int) -> None:
    if not 0 <= diversity <= 1:
        raise ValueError(f"diversity is {diversity}, must be in [0, 1]")
    if count < 0:
        raise ValueError(f"count is {count}, must not be negative")
    if relevance.ndim != 1 or vectors.ndim != 2 or len(vectors) != len(relevance):
        raise ValueError(f"relevance has shape {relevance.shape} and vectors {vectors.shape}, must be (n,) and (n, d)")
    if not np.isfinite(relevance).all() or (np.diff(relevance) > 0).any():
        raise ValueError("relevance must be finite and best first")
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not (np.abs(lengths - 1) <= UNIT_TOLERANCE).all():  # also rejects NaN
        raise ValueError("vectors must have length 1")
