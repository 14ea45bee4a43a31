"""Steps that need the legs' answers: rescoring the candidates, and weights learned from the legs' scores."""

from __future__ import annotations

from collections.abc import Mapping

from classifier.query_performance import QueryPerformanceFeatures
from classifier.rescorer import RescoredCandidates
from retrieval.concurrent_legs import LegResults
from retrieval.legs.base import within_deadline
from retrieval.preparation import PreparedQuery
from retrieval.ranking.candidates import Candidates
from retrieval.ranking.rescoring import candidate_inputs, favouring_period, replies_first
from retrieval.ranking.weighting import Weighting, allowing_for_fragments, with_learned_weights
from retrieval.types.search import Degradation, Leg


def refine_weighting(
    weighting: Weighting, query: PreparedQuery, results: LegResults, evidence: QueryPerformanceFeatures
) -> tuple[Weighting, Mapping[str, float] | None, float]:
    """Adjust the weighting to the legs' hits and to how the embedder reads the query, unless it is explicit.

    Also returns the `learned_weights` and the `fragment_share` of an `Answer`.
    """
    if query.explicit_weighting is not None:
        return weighting, None, 0.0
    learned = None
    if len(results.rankings) == len(Leg):
        with query.stopwatch.span("weigh"):
            learned = query.models.leg_weights.weights(evidence)
        weighting = with_learned_weights(weighting, learned, query.profile)
    fragment_share = query.embedding.fragment_share()
    return allowing_for_fragments(weighting, fragment_share), learned, fragment_share


async def rescore_candidates(
    query: PreparedQuery,
    results: LegResults,
    candidates: Candidates,
    evidence: QueryPerformanceFeatures,
    *,
    timeout_s: float,
) -> RescoredCandidates | None:
    """Score the candidates with the profile's rescorer if requested; a failure only degrades the answer."""
    if not query.rescores:
        return None
    rescorer = query.models.rescorer
    if rescorer is None:
        results.degraded.append(Degradation(leg="rescorer", reason="the profile has none"))
        return None

    async def rescored() -> RescoredCandidates | None:
        embedding = await query.embedding.or_none(timeout_s=0)
        memories, vectors, profile = query.snapshot.index.memories, results.vectors, query.profile
        with query.stopwatch.span("particulars"):
            if embedding is not None:
                await vectors.read(candidates.docs)
            inputs = candidate_inputs(memories, vectors, query.request.query, embedding, candidates)
        if inputs is None:
            return None
        with query.stopwatch.span("rescore"):
            numbers = candidates.numbers if len(inputs.ids) == len(candidates.docs) else None
            scored = replies_first(rescorer.score(evidence, inputs, numbers), candidates, memories)
            return favouring_period(scored, candidates, profile.period_weight)

    outcome = await within_deadline("rescorer", rescored(), timeout_s)
    if isinstance(outcome, Degradation):
        results.degraded.append(outcome)
        return None
    return outcome
