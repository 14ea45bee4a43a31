"""Cutting the tail of a leg's ranking: hits too far down or no better than chance are not fused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf

import numpy as np

from retrieval.legs.base import LegRanking
from retrieval.profiles.profile import Profile
from retrieval.ranking.rrf import FIRST_RANK
from retrieval.types.search import Leg


def truncate(rankings: Mapping[Leg, LegRanking], length: int) -> dict[Leg, LegRanking]:
    """The best `length` hits of each ranking."""
    return {leg: ranking.cut(length) for leg, ranking in rankings.items()}


def cut_noise(
    rankings: Mapping[Leg, LegRanking], profile: Profile, *, enough: int, identified: Collection[int] = frozenset()
) -> dict[Leg, LegRanking]:
    """Cut each ranking below the profile's noise threshold for its leg.

    Ranks alone do not separate the last real match from the first of many memories that share a common word
    or are equally near to the query, so these must not reach the fusion. A leg's best hit always stays. So do the BM25
    leg's hits down to the last of `identified`, the slots of memories that contain an identifier of the query: compared
    with a message that the query quotes, one word scores little. If only one leg has hits, it is not cut; if fewer than
    `enough` distinct memories would remain, nothing is cut.
    """
    if sum(len(ranking) > 0 for ranking in rankings.values()) == 1:
        return dict(rankings)
    kept = {leg: ranking.cut(_length(leg, ranking, profile, identified)) for leg, ranking in rankings.items()}
    left = set[int]().union(*(ranking.docs.tolist() for ranking in kept.values()))
    return kept if len(left) >= enough else dict(rankings)


def least_score(leg: Leg, best: float, profile: Profile) -> float:
    """The lowest score that counts, given the leg's best."""
    match leg:
        case Leg.VECTOR:
            return best - profile.vector_noise
        case Leg.BM25:
            return best * profile.bm25_noise
        case Leg.GRAPH:  # every hit is connected to an entity of the query or an anchor
            return -inf


def _length(leg: Leg, ranking: LegRanking, profile: Profile, identified: Collection[int]) -> int:
    least = least_score(leg, float(ranking.scores[0]), profile) if len(ranking) else 0.0
    length = int(np.count_nonzero(ranking.scores >= least))
    if leg is Leg.BM25 and identified:
        held = [rank for rank, doc in enumerate(ranking.docs.tolist(), FIRST_RANK) if doc in identified]
        length = max([length, *held])
    return length
