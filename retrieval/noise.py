"""What a leg found too far down, or that is no better than chance, has no say in the fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrieval.legs.base import Hit, LegRanking
from retrieval.profiles import Profile
from retrieval.types import Leg


def heads(rankings: Mapping[Leg, LegRanking], length: int) -> dict[Leg, LegRanking]:
    """The best `length` hits of each ranking."""
    return {leg: _with(ranking, ranking.hits[:length]) for leg, ranking in rankings.items()}


def above_noise(rankings: Mapping[Leg, LegRanking], profile: Profile, *, enough: int) -> dict[Leg, LegRanking]:
    """The rankings, each cut where it says nothing any more; a leg that alone found anything is heard out.

    A rank alone does not tell the last real match from the first of many memories that share a common
    word, or that are as near to the query as any other; a fusion of ranks must not hear of them. The
    best hit of a leg always stays, and all of them do where fewer than `enough` memories would be left:
    an answer is not cut short for their sake.

    Args:
        rankings: of the legs that answered.
        profile: its `vector_noise` and `bm25_noise`.
        enough: distinct memories that must be left.
    """
    if sum(bool(ranking.hits) for ranking in rankings.values()) == 1:
        return dict(rankings)
    heard = {leg: _with(ranking, _heard(leg, ranking.hits, profile)) for leg, ranking in rankings.items()}
    if all(heard[leg] is ranking for leg, ranking in rankings.items()):
        return heard
    left = {hit.doc for ranking in heard.values() for hit in ranking.hits}
    return heard if len(left) >= enough else dict(rankings)


def _with(ranking: LegRanking, hits: Sequence[Hit]) -> LegRanking:
    """The ranking with some of its hits; itself if that is all of them."""
    return ranking if len(hits) == len(ranking.hits) else replace(ranking, hits=tuple(hits))


def _heard(leg: Leg, hits: Sequence[Hit], profile: Profile) -> Sequence[Hit]:
    if not hits:
        return hits
    match leg:
        case Leg.VECTOR:
            least = hits[0].score - profile.vector_noise
        case Leg.BM25:
            least = hits[0].score * profile.bm25_noise
        case Leg.GRAPH:  # all that it found is tied to the query by what it names
            return hits
    return [hit for hit in hits if hit.score >= least]
