"""Prepare -> run the legs and classify concurrently -> weigh -> rescore -> cut noise -> fuse -> select."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from classifier.inference import IntentClassifier, IntentPrediction
from classifier.query_performance import QueryPerformanceFeatures
from classifier.rescorer import Rescored
from retrieval.answer.answer import Answer
from retrieval.answer.conversation import Conversation
from retrieval.answer.hydration import TextReader
from retrieval.answer.selection import Limits, RankedMemory, select
from retrieval.embedding.cache import Embedding
from retrieval.embedding.embedders import Embedders
from retrieval.errors import VectorsReplaced
from retrieval.index.query_vectors import QueryVectors
from retrieval.legs.base import LegRanking, within_deadline
from retrieval.legs.concurrent import ConcurrentLegs, LegResults
from retrieval.preparation import Preparation, PreparedQuery
from retrieval.profiles.models import ModelRegistry
from retrieval.profiles.profile import Profile
from retrieval.ranking.candidates import Candidates
from retrieval.ranking.noise import cut_noise, truncate
from retrieval.ranking.ordering import Ordering
from retrieval.ranking.relevance import check_relevance
from retrieval.ranking.rescoring import candidate_inputs, rescore
from retrieval.ranking.timeliness import StateOrder
from retrieval.ranking.weighting import (
    Weighting,
    adaptive_weighting,
    allowing_for_fragments,
    check_weights,
    evidence_of,
    stated_intent,
    wants_rescoring,
    with_learned_weights,
)
from retrieval.store.pool import Pool
from retrieval.timings import Stopwatch
from retrieval.types.search import Degradation, Leg, SearchRequest
from retrieval.validation import check_query, check_storable

MOST_AT_ONCE = 8
"""Searches that a process runs concurrently, each using 1-2 MB; others wait once their namespace is loaded.

Eight keep an event loop busy: with 64 clients they answer 300 searches a second; 16 answer 270 and take 8 MB more.
"""


class Pipeline:
    """Answers searches; stateless apart from its parts."""

    def __init__(
        self,
        *,
        pool: Pool,
        embedders: Embedders,
        model_registry: ModelRegistry,
        preparation: Preparation,
        legs: ConcurrentLegs,
        leg_timeout_s: float,
    ) -> None:
        """Assemble a pipeline whose classifier and rescorer have the legs' deadline of `leg_timeout_s` seconds."""
        self._pool = pool
        self._embedders = embedders
        self._model_registry = model_registry
        self._leg_timeout_s = leg_timeout_s
        self._preparation = preparation
        self._legs = legs
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def search(
        self, name: str, request: SearchRequest, stopwatch: Stopwatch, conversation: Conversation | None = None
    ) -> Answer:
        """Search a namespace, for what the conversation does not hold.

        Raises NotFound if there is none of that name, InvalidInput for a blank query, unusable weights or strings or an
        unknown profile, AllLegsFailed if none of the mode's legs answered.
        """
        check_query(request.query)
        check_storable(request)
        check_weights(request.weights)
        search = partial(self._search, name, request, conversation or Conversation(), stopwatch)
        try:
            return await search()
        except VectorsReplaced:  # once more, and by the embedder that the namespace has now
            return await search()

    async def classify(self, query: str, profile: Profile, stopwatch: Stopwatch) -> IntentPrediction:
        """The intent of a query by the profile's classifier."""
        check_query(query)
        check_storable(query, ("query",))
        models = await self._model_registry.learned(profile.models)
        embedding = Embedding(self._embedders.default, query, stopwatch)
        return await self._predicted(query, models.classifier, embedding, stopwatch)

    async def _search(
        self, name: str, request: SearchRequest, conversation: Conversation, stopwatch: Stopwatch
    ) -> Answer:
        """Search a namespace; raises VectorsReplaced if it was given new vectors meanwhile."""
        async with self._preparation.prepared(name, request, conversation, stopwatch) as query, self._turns:
            found, prediction = await self._legs.run(query, meanwhile=partial(self._intent, query))
            return await self._answer(query, found, prediction)

    async def _answer(self, query: PreparedQuery, found: LegResults, prediction: IntentPrediction) -> Answer:
        """Weigh, rescore, fuse and select."""
        request, profile = query.request, query.profile
        weighting = query.explicit or adaptive_weighting(prediction, profile)
        if not any(weighting.weights[leg] > 0 for leg in found.rankings):  # the weights of an intent may be 0
            raise found.no_answer()
        fan_out = query.begun.fan_out(weighting.recipe.fan_out)
        rrf_k = request.rrf_k or weighting.recipe.rrf_k
        candidates = Candidates.from_rankings(truncate(found.rankings, fan_out))
        limits, rescores = Limits.from_request(request, profile), wants_rescoring(request, profile)
        check_relevance(request.min_relevance, rescores=rescores)
        async with TextReader(self._pool, query.snapshot, request, query.begun.conversation) as reader:
            # Missing vectors are read first: prefetching would hold a second connection meanwhile.
            if not (rescores or limits.diversity) or not found.vectors.take(candidates.docs):
                likely = candidates.fuse(candidates.rankings, weighting.weights, rrf_k=rrf_k)
                await reader.prefetch(candidates.docs_of(likely, limits.read_ahead(rescores=rescores)))
            evidence = evidence_of(request.query, candidates, prediction)
            rescored = await self._rescored(query, found, candidates, evidence) if rescores else None
            weighting, learned_weights, fragment_share = self._refined(weighting, query, found, evidence)
            # What was said of a named time is of that time, whatever came later.
            memories = query.snapshot.index.memories
            state = None if query.time else StateOrder.from_query(request.query, memories, profile.period_weight)
            ordering = Ordering(
                candidates, weighting.weights, rrf_k, rescored, query.time, state, request.min_relevance
            )
            selected, fused_rankings = await _select(query, ordering, reader, limits, found.vectors)
        return Answer(
            snapshot=query.snapshot,
            view=query.view,
            conversation=query.begun.conversation,
            found=selected,
            said_before=[*reader.said_before],
            prediction=prediction,
            evidence=evidence,
            learned_weights=learned_weights,
            fragment_share=fragment_share,
            rescored=rescored,
            named_time=query.time,
            state_order=state,
            weighting=weighting,
            profile=profile,
            rrf_k=rrf_k,
            fan_out=fan_out,
            candidates=candidates,
            fused_rankings=fused_rankings,
            degraded=found.degraded,
            stopwatch=query.stopwatch,
        )

    async def _rescored(
        self, query: PreparedQuery, found: LegResults, candidates: Candidates, evidence: QueryPerformanceFeatures
    ) -> Rescored | None:
        """Score the candidates with the profile's rescorer; a failure only degrades the answer."""
        rescorer = query.models.rescorer
        if rescorer is None:
            found.degraded.append(Degradation(leg="rescorer", reason="the profile has none"))
            return None

        async def rescored() -> Rescored | None:
            embedding = await query.embedding.or_none(timeout_s=0)
            memories, vectors, profile = query.snapshot.index.memories, found.vectors, query.profile
            with query.stopwatch.span("particulars"):
                if embedding is not None:
                    await vectors.read(candidates.docs)
                known = candidate_inputs(memories, vectors, query.request.query, embedding, candidates)
            if known is None:
                return None
            with query.stopwatch.span("rescore"):
                return rescore(rescorer, evidence, known, candidates, profile.period_weight)

        outcome = await within_deadline("rescorer", rescored(), self._leg_timeout_s)
        if isinstance(outcome, Degradation):
            found.degraded.append(outcome)
            return None
        return outcome

    def _refined(
        self, weighting: Weighting, query: PreparedQuery, found: LegResults, evidence: QueryPerformanceFeatures
    ) -> tuple[Weighting, Mapping[str, float] | None, float]:
        """An adaptive weighting in the light of what the legs found and of how the embedder reads the query.

        Returns also the weights predicted from the legs' scores, None if a leg is missing, and the share of the query
        that is read in fragments.
        """
        if query.explicit is not None:
            return weighting, None, 0.0
        learned = None
        if len(found.rankings) == len(Leg):
            with query.stopwatch.span("weigh"):
                learned = query.models.leg_weights.weights(evidence)
            weighting = with_learned_weights(weighting, learned, query.profile)
        embedder = self._embedders.of(query.snapshot.namespace.settings.embedder)
        fragment_share = embedder.fragment_share(query.request.query)
        return allowing_for_fragments(weighting, fragment_share), learned, fragment_share

    async def _intent(self, query: PreparedQuery) -> IntentPrediction:
        """The query's intent, as the caller states or the classifier predicts it."""
        request = query.request
        if request.intent is not None:
            return stated_intent(request.intent)
        return await self._predicted(request.query, query.models.classifier, query.classified, query.stopwatch)

    async def _predicted(
        self, query: str, classifier: IntentClassifier, embedding: Embedding, stopwatch: Stopwatch
    ) -> IntentPrediction:
        classifier.read_ahead(query)  # while the embedding is being computed
        vector = await embedding.or_none(timeout_s=self._leg_timeout_s)
        with stopwatch.span("classify"):
            return classifier.predict(query, vector)


async def _select(
    query: PreparedQuery, ordering: Ordering, reader: TextReader, limits: Limits, vectors: QueryVectors
) -> tuple[list[RankedMemory], Mapping[Leg, LegRanking]]:
    """Select from what is better than noise; returns also the rankings that were fused.

    Duplicates may leave too few memories; then the hits that were cut make up for them.
    """
    every = ordering.candidates.rankings
    rankings: Mapping[Leg, LegRanking] = every
    if not (query.time and query.time.alone):  # such a query is like none of what was said then
        rankings = cut_noise(every, query.profile, enough=limits.wanted)
    while True:
        with query.stopwatch.span("fuse"):
            order = ordering.of(rankings)
        with query.stopwatch.span("hydrate"):
            selected = await select(reader, order, ordering.candidates, rankings, vectors, limits, ordering.rescored)
        if len(selected) >= limits.top_k or rankings == every:
            return selected, rankings
        rankings = every
