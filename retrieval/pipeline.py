"""Prepare -> run the legs, predict the intent -> weigh -> rescore -> weigh again -> cut noise -> fuse -> select."""

from __future__ import annotations

import asyncio
from functools import partial

from classifier.inference import IntentPrediction
from retrieval.answer.answer import Answer
from retrieval.answer.conversation import Conversation
from retrieval.answer.hydration import TextReader
from retrieval.answer.selection import PREFETCH_EXTRA, Limits, select_above_noise
from retrieval.concurrent_legs import ConcurrentLegs, LegResults
from retrieval.errors import VectorsReplaced
from retrieval.intents import IntentPredictor
from retrieval.preparation import Preparation, PreparedQuery
from retrieval.ranking.candidates import Candidates
from retrieval.ranking.noise import truncate
from retrieval.ranking.ordering import Ordering
from retrieval.ranking.weighting import adaptive_weighting, check_relevance, check_weights, evidence_of
from retrieval.reranking import refine_weighting, rescore_candidates
from retrieval.store.pool import Pool
from retrieval.timings import Stopwatch
from retrieval.types.search import PackSize, SearchRequest
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
        preparation: Preparation,
        legs: ConcurrentLegs,
        intents: IntentPredictor,
        rescorer_timeout_s: float,
    ) -> None:
        """Assemble a pipeline whose rescorer has a deadline of `rescorer_timeout_s` seconds."""
        self._pool = pool
        self._preparation = preparation
        self._legs = legs
        self._intents = intents
        self._rescorer_timeout_s = rescorer_timeout_s
        self._concurrency = asyncio.Semaphore(MOST_AT_ONCE)

    async def search(
        self,
        name: str,
        request: SearchRequest,
        stopwatch: Stopwatch,
        conversation: Conversation | None = None,
        pack_size: PackSize | None = None,
    ) -> Answer:
        """Search a namespace, leaving out what the conversation already contains.

        For a context pack, more than `top_k` memories are found if that many do not fill it.

        Raises NotFound if it does not exist, InvalidInput for a blank query, unusable weights or strings or an unknown
        profile, AllLegsFailed if none of the mode's legs answered.
        """
        check_query(request.query)
        check_storable(request)
        check_weights(request.weights)
        prepare = partial(
            self._preparation.prepare, name, request, conversation or Conversation(), stopwatch, pack_size
        )
        try:
            return await self._search(await prepare())
        except VectorsReplaced:  # retry once, with the namespace's present embedder
            return await self._search(await prepare())

    async def _search(self, query: PreparedQuery) -> Answer:
        """Answer a query; raises VectorsReplaced if its namespace got new vectors meanwhile."""
        async with self._concurrency:
            results, prediction = await self._legs.run(query, meanwhile=partial(self._intents.intent_of, query))
            return await self._answer(query, results, prediction)

    async def _answer(self, query: PreparedQuery, results: LegResults, prediction: IntentPrediction) -> Answer:
        """Weigh, rescore, weigh again by what the legs found, cut noise, fuse and select."""
        request, profile = query.request, query.profile
        weighting = query.explicit_weighting or adaptive_weighting(prediction, profile)
        if not any(weighting.weights[leg] > 0 for leg in results.rankings):  # the weights of an intent may be 0
            raise results.no_answer()
        rrf_k = request.rrf_k or weighting.recipe.rrf_k
        state_order = query.state_order
        rankings = state_order.break_ties(results.rankings) if state_order else results.rankings
        candidates = Candidates.from_rankings(truncate(rankings, query.fan_out_for(weighting.recipe.fan_out, profile)))
        limits = Limits.from_request(request, profile)
        check_relevance(request.min_relevance, rescores=query.rescores)
        async with TextReader(self._pool, query.snapshot, request, query.conversation) as reader:
            # Missing vectors are read first: prefetching would hold a second connection meanwhile.
            if not (query.rescores or limits.diversity) or not results.vectors.take(candidates.docs):
                likely = candidates.fuse(candidates.rankings, weighting.weights, rrf_k=rrf_k)
                await reader.prefetch(candidates.docs_of(likely, limits.read_at_once + PREFETCH_EXTRA * query.rescores))
            evidence = evidence_of(request.query, candidates, prediction)
            rescored = await rescore_candidates(
                query, results, candidates, evidence, timeout_s=self._rescorer_timeout_s
            )
            weighting, learned_weights, fragment_share = refine_weighting(weighting, query, results, evidence)
            ordering = Ordering(
                candidates=candidates,
                weights=weighting.weights,
                rrf_k=rrf_k,
                rescored=rescored,
                named_time=query.named_time,
                state_order=state_order,
                min_relevance=request.min_relevance,
                identified=frozenset() if rescored is None else query.identified,
            )
            memories, fused_rankings = await select_above_noise(query, reader, ordering, results.vectors, limits)
        return Answer(
            query=query,
            memories=memories,
            said_before=[*reader.said_before],
            prediction=prediction,
            evidence=evidence,
            learned_weights=learned_weights,
            fragment_share=fragment_share,
            weighting=weighting,
            ordering=ordering,
            fused_rankings=fused_rankings,
            degraded=results.degraded,
        )
