"""Conversions between the pipeline's types and those of requests and responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from retrieval.answer.answer import Answer
from retrieval.answer.conversation import query_of
from retrieval.answer.pack import NOT_RELEVANT, ContextPack
from retrieval.answer.selection import CHOICE, RankedMemory
from retrieval.answer.snippet import snippet
from retrieval.journal.query_log import AnsweredSearch
from retrieval.profiles.profile import Profile
from retrieval.ranking.rescoring import in_words
from retrieval.ranking.weighting import intent_to_wire
from retrieval.tasks import in_thread_if_long
from retrieval.types.search import (
    MAX_TOP_K,
    ContextRequest,
    ContextResponse,
    Explanation,
    FusedEvidence,
    Leg,
    SearchRequest,
    SearchResponse,
    SearchResult,
)

LEAST_DEPTH, TOKENS_PER_DEPTH = 30, 128
"""`top_k` of the search behind a context pack: one for so many tokens of the budget, but at least 30."""

NOTHING_RELEVANT = "nothing_relevant"
UNKNOWN_NAMESPACE = "unknown_namespace"
_NAMES = {leg: leg.value for leg in Leg}  # `Enum.value` is a slow property


async def search_response(answer: Answer) -> SearchResponse:
    """The response of the search endpoint."""
    return SearchResponse(results=await search_results(answer), **_about(answer))


async def context_response(answer: Answer, packed: ContextPack, max_tokens: int) -> ContextResponse:
    """The response of the context endpoint; with `explain` it includes what was found, packed or dropped."""
    lacks_relevant = not packed.items and any(each.reason == NOT_RELEVANT for each in packed.dropped)
    considered = {item.id for item in packed.items} | {each.id for each in packed.dropped}  # a cap finds more
    ranked = replace(answer, memories=[each for each in answer.memories if each.memory.id in considered])
    return ContextResponse(
        context=packed.context,
        tokens_used=packed.tokens_used,
        max_tokens=max_tokens,
        items=packed.items,
        dropped=packed.dropped,
        related=packed.related,
        reason=NOTHING_RELEVANT if lacks_relevant else UNSET,
        results=await search_results(ranked) if answer.query.request.explain else UNSET,
        **_about(answer),
    )


def unknown_namespace(request: ContextRequest, profile: Profile, timings_ms: dict[str, float]) -> ContextResponse:
    """The response of the context endpoint for a namespace that does not exist."""
    return ContextResponse(
        context="",
        tokens_used=0,
        max_tokens=request.max_tokens,
        items=[],
        dropped=[],
        intent=None,
        weights={},
        profile=profile.label,
        degraded=[],
        timings_ms=timings_ms,
        reason=UNKNOWN_NAMESPACE,
    )


def _about(answer: Answer) -> dict[str, Any]:
    """The fields that both responses have besides the results."""
    given = answer.query.explicit_weighting is not None  # all weights of a request or a recipe may be tiny
    return {
        "intent": intent_to_wire(answer.prediction),
        "weights": {
            _NAMES[leg]: weight if given else round(weight, 4) for leg, weight in answer.weighting.weights.items()
        },
        "profile": answer.query.profile.label,
        "degraded": list(answer.degraded),
        "explanation": explanation(answer) if answer.query.request.explain else UNSET,
        "timings_ms": answer.query.stopwatch.timings_ms(),
        "search_id": answer.search_id,
    }


def answered_search(answer: Answer, shown: Sequence[RankedMemory]) -> AnsweredSearch:
    """The search as a query log entry; `shown` are the memories that the caller gets, best first."""
    return AnsweredSearch(
        search_id=answer.search_id,
        request=answer.query.original_request,
        profile=answer.query.profile.label,
        intent=answer.prediction.label.value,
        ids=[found.memory.id for found in shown],
        scores=[found.score for found in shown],
        total_ms=answer.query.stopwatch.timings_ms()["total"],
    )


async def search_results(answer: Answer) -> list[SearchResult]:
    """The memories found, with each leg's evidence."""
    request, language = answer.query.request, answer.namespace.settings.language
    return await in_thread_if_long(
        sum(len(found.memory.text) for found in answer.memories),
        lambda: [_result(found, request, language) for found in answer.memories],
    )


def explanation(answer: Answer) -> Explanation:
    """The weights, the reason for them, and each leg's details."""
    ordering = answer.ordering
    identified = ordering.puts_identified_first
    legs = {leg.value: {"hits": len(ranking), **ranking.details} for leg, ranking in answer.fused_rankings.items()}
    if (wording := answer.query.embedding.also_read_as) and Leg.VECTOR in legs:
        legs[Leg.VECTOR]["also_read_as"] = wording
    return Explanation(
        query=answer.query.request.query,
        weights=answer.weighting.reason,
        rescoring=in_words(ordering.rescored, identified=identified) if ordering.rescored else None,
        time=in_time.reason if (in_time := ordering.named_time or ordering.state_order) else None,
        rrf_k=ordering.rrf_k,
        fan_out=answer.query.fan_out_for(answer.weighting.recipe.fan_out, answer.query.profile),
        legs=legs,
    )


def as_search(request: ContextRequest) -> SearchRequest:
    """The search behind a context pack; without a query it searches for the user's last message.

    Each leg ranks no more than a pack of this size needs: the deeper it ranks, the more noise is fused. The packer caps
    sources and reports what it dropped, so the search is for more memories, to replace those.
    """
    own = ("query", "source_cap", "top_k", "min_relevance")
    fields = {name: getattr(request, name) for name in SearchRequest.__struct_fields__ if name not in own}
    query = request.query or query_of(request.messages)
    top_k = min(request.top_k, max(LEAST_DEPTH, request.max_tokens // TOKENS_PER_DEPTH))
    if request.source_cap is None:  # the search then uses the profile's
        return SearchRequest(query=query, top_k=top_k, **fields)
    return SearchRequest(query=query, top_k=min(CHOICE * top_k, MAX_TOP_K), source_cap=MAX_TOP_K, **fields)


def _result(found: RankedMemory, request: SearchRequest, language: str) -> SearchResult:
    memory, relevance = found.memory, found.relevance
    return SearchResult(
        id=memory.id,
        text=memory.text,
        snippet=snippet(memory.text, request.query, language),
        title=memory.title,
        kind=memory.kind,
        speaker=memory.speaker,
        session_id=memory.session_id,
        document_id=memory.document_id,
        created_at=memory.created_at,
        tags=memory.tags,
        metadata=memory.metadata,
        score=found.score,
        relevance=None if relevance is None else round(relevance, 4),
        fused=FusedEvidence(rank=found.fused_rank, score=found.fused_score),
        legs={_NAMES[leg]: evidence for leg, evidence in found.leg_evidence.items()},
        duplicates=list(found.duplicates) if request.explain else UNSET,
    )
