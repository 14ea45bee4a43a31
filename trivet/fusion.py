"""Fusion of several rankings into one."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from retrieval.ranking.rrf import rrf_scores
from trivet.errors import InvalidInput


def weighted_rrf(
    rankings: Sequence[Sequence[str]], weights: Sequence[float] | None = None, *, rrf_k: float = 60.0
) -> dict[str, float]:
    """Fuse rankings as a search fuses its legs: score(d) = sum of weight / (rrf_k + rank), rank from 1.

    Unweighted form: Cormack, Clarke and Buettcher, SIGIR 2009, doi:10.1145/1571941.1572114.

    Args:
        rankings: ids, best first, each once in a ranking.
        weights: of each ranking, not negative; None for 1. A ranking of weight 0 is left out.
        rrf_k: above 0; the greater, the less the first ranks stand out.

    Returns:
        The score of each id, best first, ties by id.

    Raises:
        InvalidInput: an id is twice in a ranking, or `weights` or `rrf_k` are not as above.
    """
    weights = [1.0] * len(rankings) if weights is None else weights
    if len(weights) != len(rankings) or not all(isfinite(weight) and weight >= 0 for weight in weights):
        raise InvalidInput("weights must be one for each ranking, finite and not negative", loc=("weights",))
    if not (isfinite(rrf_k) and rrf_k > 0):
        raise InvalidInput(f"rrf_k is {rrf_k}, must be above 0", loc=("rrf_k",))
    for number, ranking in enumerate(rankings):
        if len(set(ranking)) < len(ranking):
            raise InvalidInput(f"ranking {number} has an id twice", loc=("rankings", number))
    return rrf_scores(zip(rankings, weights, strict=True), rrf_k=rrf_k)
