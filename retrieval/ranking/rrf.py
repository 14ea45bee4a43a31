"""The formula of weighted reciprocal rank fusion, for a search's candidates and a caller's own rankings alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import fsum
from typing import TypeVar

K = TypeVar("K", int, str)

FIRST_RANK = 1
"""Rank of the best hit in the formula of the fusion."""


def rrf_scores(rankings: Iterable[tuple[Iterable[K], float]], *, rrf_k: float) -> dict[K, float]:
    """Fuse rankings, each with its weight: score(d) = sum over them of weight / (rrf_k + rank), rank from 1.

    Keys that only rankings of weight 0 have are left out. The sum is exactly rounded, so it does not depend on the
    order of the rankings. Best first, ties by key. Unweighted form: Cormack, Clarke and Buettcher, SIGIR 2009,
    doi:10.1145/1571941.1572114. Raises OverflowError if a score overflows.
    """
    parts: defaultdict[K, list[float]] = defaultdict(list)
    for ranking, weight in rankings:
        if weight:
            for rank, key in enumerate(ranking, FIRST_RANK):
                parts[key].append(weight / (rrf_k + rank))
    scores = {key: fsum(parts[key]) for key in sorted(parts)}
    return dict(sorted(scores.items(), key=lambda scored: scored[1], reverse=True))  # stable: ties stay by key
