"""Made-up rankings of legs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from retrieval.index.strings import StringColumn
from retrieval.legs.base import LegRanking
from retrieval.ranking.candidates import Candidates
from retrieval.ranking.fusion import FusedOrder, blend
from retrieval.types.search import Leg


def ranking_of(hits: Iterable[tuple[str, int, float]], **about: Any) -> LegRanking:
    """A ranking of memories given by id, slot and score, best first."""
    names, docs, scores = list(zip(*hits, strict=True)) or [(), (), ()]
    ids, slots = StringColumn(), np.array(docs, np.int64)
    ids.put(slots, names)
    return LegRanking(docs=slots, scores=np.array(scores, np.float64), ids=ids, **about)


class Fused(NamedTuple):
    """A fused memory."""

    id: str
    score: float


def weighted_rrf(
    rankings: Mapping[Leg, Sequence[str]], weights: Mapping[Leg, float], *, rrf_k: float = 60
) -> list[Fused]:
    """A search's result for rankings, given as ids, best first."""
    ids = sorted(set().union(*rankings.values()))
    known = ranking_of((id, doc, 0.0) for doc, id in enumerate(ids))
    legs = {
        leg: replace(known, docs=np.array([*map(ids.index, ranking)], np.int64)) for leg, ranking in rankings.items()
    }
    candidates = Candidates.from_rankings(legs)
    fused = candidates.fuse(legs, weights, rrf_k=rrf_k)
    return list(map(Fused, candidates.ids(fused.numbers), fused.scores))


def blended(ids: Sequence[str], scores: Mapping[str, float], share: float) -> FusedOrder:
    """A search's result for `ids`, in the order of the fusion, and the rescorer's scores."""
    return blend([scores.get(each, -inf) for each in ids], share)
