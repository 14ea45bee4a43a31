"""The keyword leg: BM25 over all memories with any of the query's terms, turns scored in context."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import structs

from retrieval.legs.base import LegQuery, LegRanking
from retrieval.legs.bm25_scoring import TermQuery, ranked

BESIDE = 2
"""Turns this close to a good one are scored too, even if they share no term with the query."""


class Bm25Retriever:
    """BM25 with the namespace's statistics; filters apply before the cut."""

    async def search(self, query: LegQuery) -> LegRanking:
        """The best eligible memories by BM25; none if no term occurs."""
        query_terms, postings, profile = query.query_terms, query.snapshot.postings, query.profile
        memories = query.snapshot.index.memories
        term_query = TermQuery.from_postings(
            postings, query_terms.terms, k1=profile.bm25_k1, b=profile.bm25_b, period_weight=profile.period_weight
        )
        docs_of_term = {
            text: postings.terms[term].docs for term, text in query_terms.terms.items() if term in postings.terms
        }
        details: dict[str, Any] = {
            "terms": {text: int(docs.size) for text, docs in docs_of_term.items()},
            "memories": postings.memories,
        }
        if term_query.terms or term_query.period_docs.size:
            details |= {"k1": term_query.k1, "b": round(term_query.b, 4)}
        if query_terms.periods:
            details["periods"] = [str(period) for period in query_terms.periods]
        # A turn that only asks a question is seldom the answer; its terms count in the turn after it.
        docs, scores = ranked(
            term_query,
            memories,
            query.view.visible,
            query.view.eligible,
            count=query.fan_out,
            near=BESIDE,
            share=profile.neighbour_share,
            asking=profile.asking_share,
            speakers=memories.speakers_named(query.request.query),
            boost=1 + profile.speaker_boost,
        )
        ranking = LegRanking.best(docs, scores, memories.ids, count=query.fan_out, details=details, terms=term_query)
        if not query.request.explain:
            return ranking
        matched_terms = dict[int, list[str]]({doc: [] for doc in ranking.docs.tolist()})
        for text, having in docs_of_term.items():
            for doc in ranking.docs[np.isin(ranking.docs, having)].tolist():
                matched_terms[doc].append(text)
        return structs.replace(ranking, matched_terms=matched_terms)
