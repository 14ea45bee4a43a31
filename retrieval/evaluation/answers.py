"""The rankings that are judged, and what counts as found in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retrieval.evaluation.folder import Query
from retrieval.evaluation.trec import Scored
from retrieval.types import SearchResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The ranking of one query by one system.

    Attributes:
        ranking: best-first ids with scores, after `credited`.
        intent: the most probable intent, if the mode asks for it.
        degraded: legs that did not answer.
        total_ms: time of the search as the engine reports it.
    """

    query: Query
    ranking: tuple[Scored, ...]
    intent: str | None
    degraded: tuple[str, ...]
    total_ms: float


def credited(results: Iterable[SearchResult], query: Query, *, top_k: int) -> tuple[Scored, ...]:
    """Ids of a ranking as they are judged.

    Deduplication may merge a relevant memory into another of the same words, and the reader of
    the answer has its words all the same. So a result stands for the relevant ids among itself
    and its `duplicates`, one after the other, and for its own id where there are none. The list
    is cut to `top_k` after that: what merging saves brings no extra places.

    Args:
        results: best first, searched with `explain`.
        query: whose relevant ids count.
        top_k: length of the list.
    """
    relevant = set(query.relevant)
    scored: dict[str, float] = {}
    for result in results:
        duplicates = result.duplicates if isinstance(result.duplicates, list) else []
        found = [id_ for id_ in (result.id, *duplicates) if id_ in relevant]
        for id_ in found or [result.id]:
            scored.setdefault(id_, result.score)
    return tuple(scored.items())[:top_k]
