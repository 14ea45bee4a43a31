"""Prepare -> run the legs, predicting the intent meanwhile -> weigh -> rescore -> cut noise -> fuse -> select."""

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
from retrieval.ranking.timeliness import StateOrder
from retrieval.ranking.weighting import adaptive_weighting, check_relevance, check_weights, evidence_of
from retrieval.reranking import refine, rescore_candidates
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
        pack: PackSize | None = None,
    ) -> Answer:
        """Search a namespace, leaving out what the conversation already contains.

        For a context pack, more than `top_k` memories are found if that many do not fill it.

        Raises NotFound if it does not exist, InvalidInput for a blank query, unusable weights or strings or an unknown
        profile, AllLegsFailed if none of the mode's legs answered.
        """
        check_query(request.query)
        check_storable(request)
        check_weights(request.weights)
        prepare = partial(self._preparation.prepare, name, request, conversation or Conversation(), stopwatch, pack)
        try:
            return await self._search(await prepare())
        except VectorsReplaced:  # retry once, with the namespace's present embedder
            return await self._search(await prepare())

    async def _search(self, query: PreparedQuery) -> Answer:
        """Answer a query; raises VectorsReplaced if its namespace got new vectors meanwhile."""
        async with self._concurrency:
            found, prediction = await self._legs.run(query, meanwhile=partial(self._intents.intent_of, query))
            return await self._answer(query, found, prediction)

    async def _answer(self, query: PreparedQuery, found: LegResults, prediction: IntentPrediction) -> Answer:
        """Weigh, rescore, fuse and select."""
        request, profile = query.request, query.profile
        weighting = query.explicit or adaptive_weighting(prediction, profile)
        if not any(weighting.weights[leg] > 0 for leg in found.rankings):  # the weights of an intent may be 0
            raise found.no_answer()
        rrf_k = request.rrf_k or weighting.recipe.rrf_k
        candidates = Candidates.from_rankings(truncate(found.rankings, query.fan_out_for(weighting.recipe.fan_out)))
        limits = Limits.from_request(request, profile)
        check_relevance(request.min_relevance, rescores=query.rescores)
        async with TextReader(self._pool, query.snapshot, request, query.conversation) as reader:
            # Missing vectors are read first: prefetching would hold a second connection meanwhile.
            if not (query.rescores or limits.diversity) or not found.vectors.take(candidates.docs):
                likely = candidates.fuse(candidates.rankings, weighting.weights, rrf_k=rrf_k)
                await reader.prefetch(candidates.docs_of(likely, limits.read_at_once + PREFETCH_EXTRA * query.rescores))
            evidence = evidence_of(request.query, candidates, prediction)
            rescored = await rescore_candidates(query, found, candidates, evidence, timeout_s=self._rescorer_timeout_s)
            weighting, learned_weights, fragment_share = refine(weighting, query, found, evidence)
            memories, periods = query.snapshot.index.memories, query.query_terms.periods
            state = None
            if not query.time:  # later statements do not outdate those about a named time
                state = StateOrder.from_query(request.query, periods, memories, profile.period_weight)
            identified = frozenset() if rescored is None else query.identified
            ordering = Ordering(
                candidates, weighting.weights, rrf_k, rescored, query.time, state, request.min_relevance, identified
            )
            selected, fused_rankings = await select_above_noise(query, reader, ordering, found.vectors, limits)
        return Answer(
            query=query,
            found=selected,
            said_before=[*reader.said_before],
            prediction=prediction,
            evidence=evidence,
            learned_weights=learned_weights,
            fragment_share=fragment_share,
            weighting=weighting,
            ordering=ordering,
            fused_rankings=fused_rankings,
            degraded=found.degraded,
        )
