"""Classify -> run the legs concurrently -> choose weights -> cut noise -> fuse -> rescore -> select."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from classifier.inference import IntentClassifier, IntentPrediction
from classifier.leg_weights import LEGS
from classifier.query_performance import QueryPerformanceFeatures
from classifier.rescorer import Rescored
from retrieval.answer.conversation import Conversation
from retrieval.answer.hydration import TextReader
from retrieval.answer.selection import Limits, RankedMemory, select
from retrieval.embedding.cache import CachedEmbedder, Embedding
from retrieval.embedding.embedders import Embedders
from retrieval.errors import AllLegsFailed, VectorsReplaced
from retrieval.ids import uuid7
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.registry import IndexRegistry, NamespaceSnapshot, StillReading
from retrieval.legs.base import LegQuery, LegRanking, Retriever, SearchView, within_deadline
from retrieval.legs.entity_lookup import EntityLookup, PendingLookup
from retrieval.legs.partial import PartialReader
from retrieval.legs.query_terms import QueryTerms
from retrieval.profiles.models import LoadedModels, ModelRegistry
from retrieval.profiles.profile import Profile
from retrieval.profiles.registry import ProfileRegistry
from retrieval.ranking.candidates import Candidates
from retrieval.ranking.noise import cut_noise, truncate
from retrieval.ranking.relevance import check_relevance, relevant
from retrieval.ranking.rescoring import candidate_inputs, favouring_period
from retrieval.ranking.timeliness import NamedTime, StateOrder, joined
from retrieval.ranking.weighting import (
    Weighting,
    adaptive_weighting,
    allowing_for_fragments,
    check_weights,
    evidence_of,
    explicit_weighting,
    stated_intent,
    wants_rescoring,
    with_learned_weights,
)
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.timings import Stopwatch
from retrieval.types.search import Degradation, Leg, Mode, SearchRequest
from retrieval.validation import check_query, check_storable

MOST_AT_ONCE = 8
"""Searches that a process runs concurrently, each using 1-2 MB; others wait once their namespace is loaded.

Eight keep an event loop busy: with 64 clients they answer 300 searches a second; 16 answer 270 and take 8 MB more.
"""

MOST_SAID_BEFORE = 200
"""Hits that a leg returns in addition because the conversation may hold them."""

_RunningLeg = asyncio.Future[LegRanking | Degradation]


class _Asked(NamedTuple):
    """A request, the conversation that it is part of, and what was begun for it at once.

    Attributes:
        default_embedding: by the default embedder, for namespaces that have no other and for most classifiers.
    """

    request: SearchRequest
    conversation: Conversation
    default_embedding: Embedding
    pending_lookup: PendingLookup
    stopwatch: Stopwatch


class _RequestContext(NamedTuple):
    """Everything a search needs before its legs run.

    Attributes:
        embedding: the query's, by the namespace's embedder.
        degraded: the legs that cannot run on this snapshot.
    """

    asked: _Asked
    embedding: Embedding
    snapshot: NamespaceSnapshot
    query_terms: QueryTerms
    view: SearchView
    profile: Profile
    learned: LoadedModels
    degraded: Sequence[Degradation]
    time: NamedTime | None

    @property
    def classified(self) -> Embedding:
        """The query's embedding by the embedder that the classifier reads."""
        own = self.learned.classifier_embedder == self.snapshot.namespace.settings.embedder
        return self.embedding if own else self.asked.default_embedding


class _LegResults(NamedTuple):
    """The output of the legs and of the classifier.

    Attributes:
        explicit: the weighting if it does not depend on the query, else None.
        embedding: the query's, shape (dimensions,); None if there is none.
        vectors: the memory vectors read so far.
        degraded: legs that failed, and why.
    """

    context: _RequestContext
    explicit: Weighting | None
    prediction: IntentPrediction
    embedding: NDArray[np.float32] | None
    vectors: QueryVectors
    rankings: Mapping[Leg, LegRanking]
    degraded: list[Degradation]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of a search.

    Attributes:
        view: the memories that the search could see.
        found: the memories, best first.
        said_before: ids of memories that were left out as the conversation holds them.
        evidence: features of the legs' scores.
        learned_weights: predicted from the legs' scores; None if a leg is missing or the weights were explicit.
        fragment_share: how much of the query the embedder reads in fragments; 0 if the weights were explicit.
        rescored: the rescorer's scores; None if no rescorer ran.
        named_time: the memories of the time that the query names; None if it names none.
        state_order: the order by time where the query asks how things are now, or were; None if it does not.
        fan_out: most hits taken from a leg.
        candidates: the memories that the legs ranked, at most `fan_out` hits each.
        fused_rankings: the same rankings without noise, as they were fused.
        degraded: what failed.
        search_id: identifies the search in feedback.
    """

    snapshot: NamespaceSnapshot
    view: SearchView
    conversation: Conversation
    found: Sequence[RankedMemory]
    said_before: Sequence[str]
    prediction: IntentPrediction
    evidence: QueryPerformanceFeatures
    learned_weights: Mapping[str, float] | None
    fragment_share: float
    rescored: Rescored | None
    named_time: NamedTime | None
    state_order: StateOrder | None
    weighting: Weighting
    profile: Profile
    rrf_k: float
    fan_out: int
    candidates: Candidates
    fused_rankings: Mapping[Leg, LegRanking]
    degraded: Sequence[Degradation]
    stopwatch: Stopwatch
    search_id: str = field(default_factory=uuid7)

    @property
    def namespace(self) -> Namespace:
        """The namespace as of the search."""
        return self.snapshot.namespace

    @property
    def index(self) -> NamespaceIndex:
        """Its index, which later searches may update."""
        return self.snapshot.index

    @property
    def leg_rankings(self) -> Mapping[Leg, LegRanking]:
        """The legs' rankings, at most `fan_out` hits each."""
        return self.candidates.rankings

    @property
    def evidence_by_id(self) -> QueryPerformanceFeatures:
        """The evidence with ids in the place of candidate numbers, for training."""
        legs = {leg: getattr(self.evidence, leg) for leg in LEGS}
        return replace(
            self.evidence, **{leg: of._replace(ids=self.candidates.ids([*of.ids])) for leg, of in legs.items()}
        )

    def rescorer_scores(self) -> dict[str, float]:
        """The rescorer's scores by id; none if no rescorer ran."""
        scores = {} if self.rescored is None else self.rescored.scores
        return dict(zip(self.candidates.ids([*scores]), scores.values(), strict=True))


class Pipeline:
    """Answers searches; stateless apart from its parts."""

    def __init__(
        self,
        *,
        pool: Pool,
        indexes: IndexRegistry,
        embedders: Embedders,
        profile_registry: ProfileRegistry,
        model_registry: ModelRegistry,
        retrievers: Mapping[Leg, Retriever],
        leg_timeout_s: float,
        inline_legs: Collection[Leg] = (),
    ) -> None:
        """Assemble a pipeline whose legs each have a deadline of `leg_timeout_s` seconds.

        `inline_legs` wait for nothing but the query's embedding; they run without a task if it is ready.
        """
        self._pool = pool
        self._indexes = indexes
        self._entity_lookup = EntityLookup(pool)
        self._embedders = embedders
        self._profile_registry = profile_registry
        self._model_registry = model_registry
        self._retrievers = retrievers
        self._leg_timeout_s = leg_timeout_s
        self._inline_legs = frozenset(inline_legs)
        self._partial = PartialReader(pool, leg_timeout_s=leg_timeout_s)
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
        try:
            return await self._search(name, request, stopwatch, conversation or Conversation())
        except VectorsReplaced:  # once more, and by the embedder that the namespace has now
            return await self._search(name, request, stopwatch, conversation or Conversation())

    async def _search(
        self, name: str, request: SearchRequest, stopwatch: Stopwatch, conversation: Conversation
    ) -> Answer:
        """Search a namespace; raises VectorsReplaced if it was given new vectors meanwhile."""
        embedding = self._embedding(self._embedders.default, request, stopwatch)
        ahead = self._indexes.last(name) if Leg.GRAPH in request.mode.legs else None
        with PendingLookup(self._entity_lookup, request.query, ahead=ahead) as pending_lookup:
            # The context holds its view until the answer is complete.
            asked = _Asked(request, conversation, embedding, pending_lookup, stopwatch)
            context = await self._request_context(name, asked)
            async with self._turns:
                return await self._answer(await self._ask(context))

    async def _answer(self, leg_results: _LegResults) -> Answer:
        """Weigh, fuse, rescore and select from the legs' results."""
        (request, conversation, _, _, stopwatch), _, snapshot, _, view, profile, _, _, time = leg_results.context
        prediction = leg_results.prediction
        weighting = leg_results.explicit or adaptive_weighting(prediction, profile)
        # The weights of an intent may be 0 for every leg that answered.
        if not any(weighting.weights[leg] > 0 for leg in leg_results.rankings):
            raise _no_answer(leg_results.degraded)
        fan_out = _fan_out(weighting.recipe.fan_out, leg_results.context.asked)
        rrf_k = request.rrf_k or weighting.recipe.rrf_k
        candidates = Candidates.from_rankings(truncate(leg_results.rankings, fan_out))
        # What was said of a named time is of that time, whatever came later.
        state = None if time else StateOrder.from_query(request.query, snapshot.index.memories, profile.period_weight)
        limits, rescores = Limits.from_request(request, profile), wants_rescoring(request, profile)
        check_relevance(request.min_relevance, rescores=rescores)
        async with TextReader(self._pool, snapshot, request, conversation) as reader:
            wants_vectors = rescores or limits.diversity
            # Missing vectors are read first: prefetching would hold a second connection meanwhile.
            if not wants_vectors or not leg_results.vectors.take(candidates.docs):
                likely = candidates.fuse(candidates.rankings, weighting.weights, rrf_k=rrf_k)
                await reader.prefetch(candidates.docs_of(likely, limits.read_ahead(rescores=rescores)))
            evidence = evidence_of(request.query, candidates, prediction)
            rescored = await self._rescore(leg_results, candidates, evidence) if rescores else None
            learned_weights = _learned_weights(leg_results, candidates, evidence)
            if learned_weights is not None:
                weighting = with_learned_weights(weighting, learned_weights, profile)
            fragment_share = 0.0
            if leg_results.explicit is None:
                embedder = self._embedders.of(snapshot.namespace.settings.embedder)
                fragment_share = embedder.fragment_share(request.query)
                weighting = allowing_for_fragments(weighting, fragment_share)

            async def fuse_and_select(rankings: Mapping[Leg, LegRanking]) -> list[RankedMemory]:
                with stopwatch.span("fuse"):
                    fused = candidates.fuse(rankings, weighting.weights, rrf_k=rrf_k)
                    order = candidates.rank(fused, rescored)
                    if in_time := time or state:
                        order = in_time.first(order, candidates)
                    if request.min_relevance is not None and rescored is not None:
                        order = relevant(order, candidates, rescored, time, at_least=request.min_relevance)
                with stopwatch.span("hydrate"):
                    return await select(reader, order, candidates, rankings, leg_results.vectors, limits, rescored)

            cut_rankings: Mapping[Leg, LegRanking] = candidates.rankings
            if not (time and time.alone):  # such a query is like none of what was said then
                cut_rankings = cut_noise(candidates.rankings, profile, enough=limits.wanted)
            found = await fuse_and_select(cut_rankings)
            # Duplicates may leave too few memories; the hits that were cut make up for them.
            if len(found) < limits.top_k and cut_rankings != candidates.rankings:
                cut_rankings = candidates.rankings
                found = await fuse_and_select(cut_rankings)
        return Answer(
            snapshot=snapshot,
            view=view,
            conversation=conversation,
            found=found,
            said_before=[*reader.said_before],
            prediction=prediction,
            evidence=evidence,
            learned_weights=learned_weights,
            fragment_share=fragment_share,
            rescored=rescored,
            named_time=time,
            state_order=state,
            weighting=weighting,
            profile=profile,
            rrf_k=rrf_k,
            fan_out=fan_out,
            candidates=candidates,
            fused_rankings=cut_rankings,
            degraded=leg_results.degraded,
            stopwatch=stopwatch,
        )

    async def _request_context(self, name: str, asked: _Asked) -> _RequestContext:
        """Bring the namespace up to date; find the query's terms, profile and models."""
        request = asked.request
        with asked.stopwatch.span("namespace"):
            try:
                snapshot, query_terms = await self._snapshot(name, request)
            except StillReading as reading:
                if request.mode is not Mode.GRAPH:
                    return await self._partial_context(reading.namespace, asked)
                try:
                    async with asyncio.timeout(self._leg_timeout_s):
                        snapshot, query_terms = await self._snapshot(name, request, waits=True)
                except TimeoutError as exc:
                    raise AllLegsFailed("graph: the namespace is still being read") from exc
            view = SearchView.from_request(snapshot, request)
            profile = await self._profile_registry.find(request.profile or snapshot.namespace.settings.profile)
            learned = await self._model_registry.learned(profile.models, snapshot.namespace.settings.embedder)
        time = _named_time(request, snapshot, query_terms, view, profile)
        embedding = self._embedding_for(snapshot.namespace, asked)
        return _RequestContext(asked, embedding, snapshot, query_terms, view, profile, learned, (), time)

    async def _partial_context(self, namespace: Namespace, asked: _Asked) -> _RequestContext:
        """The context of a query whose namespace is still being loaded."""
        request = asked.request
        embedding = self._embedding_for(namespace, asked)
        query_terms = _query_terms(request, namespace.settings.language)
        profile = await self._profile_registry.find(request.profile or namespace.settings.profile)
        learned = await self._model_registry.learned(profile.models, namespace.settings.embedder)
        fan_out = _legs_fan_out(explicit_weighting(request.mode, request.weights, profile), profile, asked)
        try:
            snapshot, degraded = await self._partial.read(
                namespace, request, query_terms, profile, embedding, fan_out=fan_out
            )
        except TimeoutError as exc:
            raise AllLegsFailed("the namespace is still being read, and the database does not answer in time") from exc
        view = SearchView.from_request(snapshot, request)
        time = _named_time(request, snapshot, query_terms, view, profile)
        return _RequestContext(asked, embedding, snapshot, query_terms, view, profile, learned, degraded, time)

    async def _ask(self, context: _RequestContext) -> _LegResults:
        """Run the legs and the classifier concurrently."""
        (request, _, _, _, stopwatch), profile = context.asked, context.profile
        embedding = context.embedding
        explicit = explicit_weighting(request.mode, request.weights, profile)
        legs = _weighing_legs(explicit, profile, request, missing={each.leg for each in context.degraded})
        running: dict[Leg, _RunningLeg] = {}
        query = self._leg_query(context, explicit, running)
        inline = [leg for leg in legs if leg in self._inline_legs and embedding.is_ready]
        reads = wants_rescoring(request, profile)
        try:
            async with asyncio.TaskGroup() as group:
                for leg in legs:
                    if leg in inline:
                        running[leg] = asyncio.get_running_loop().create_future()
                    else:
                        running[leg] = group.create_task(self._run_leg(leg, query, context.time, reads=reads))
                await asyncio.sleep(0)  # let the tasks send their statements first
                for leg in inline:
                    running[leg].set_result(await self._run_leg(leg, query, context.time, reads=reads))
                prediction = await self._classify(request, context.learned.classifier, context.classified, stopwatch)
        except ExceptionGroup as group_failure:
            if group_failure.subgroup(VectorsReplaced):
                raise VectorsReplaced from group_failure
            raise
        vector = await embedding.or_none(timeout_s=0)
        outcomes = {leg: future.result() for leg, future in running.items()}
        rankings = {leg: outcome for leg, outcome in outcomes.items() if isinstance(outcome, LegRanking)}
        failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Degradation)]
        degraded = [*context.degraded, *failures]
        if not rankings:
            raise _no_answer(degraded)
        return _LegResults(context, explicit, prediction, vector, query.vectors, rankings, degraded)

    def _leg_query(
        self, context: _RequestContext, explicit: Weighting | None, running: Mapping[Leg, _RunningLeg]
    ) -> LegQuery:
        """The query as the legs get it, which may wait for the hits of those running."""
        request, _, _, pending_lookup, stopwatch = context.asked
        snapshot, profile = context.snapshot, context.profile
        return LegQuery(
            snapshot=snapshot,
            view=context.view,
            text=request.query,
            query_terms=context.query_terms,
            embedding=context.embedding,
            filters=request.filters,
            exclude=request.exclude,
            as_of=request.as_of,
            include_superseded=request.include_superseded,
            fan_out=_legs_fan_out(explicit, profile, context.asked),
            ef_search=request.ef_search,
            max_hops=profile.hops if request.max_hops is None else request.max_hops,
            min_similarity=request.min_similarity,
            explain=request.explain,
            vectors=QueryVectors(self._pool, snapshot.index),
            profile=profile,
            rules=snapshot.namespace.settings.graph_rules(),
            pending_lookup=pending_lookup,
            other_rankings=partial(self._other_rankings, running),
            optional_wait_s=self._leg_timeout_s / 4,
            stopwatch=stopwatch,
        )

    async def _snapshot(
        self, name: str, request: SearchRequest, *, waits: bool = False
    ) -> tuple[NamespaceSnapshot, QueryTerms]:
        """The namespace brought up to date and the query's terms; raises as `IndexRegistry.current` does."""
        query_terms: dict[str, QueryTerms] = {}

        def terms(language: str) -> Sequence[int]:
            if language not in query_terms:
                query_terms[language] = _query_terms(request, language)
            return query_terms[language].numbers

        snapshot = await self._indexes.current(name, terms, request.filters.metadata, waits=waits)
        return snapshot, query_terms[snapshot.namespace.settings.language]

    async def _rescore(
        self, leg_results: _LegResults, candidates: Candidates, evidence: QueryPerformanceFeatures
    ) -> Rescored | None:
        """Score the candidates with the rescorer; a failure is recorded in `degraded` and does not fail the search."""
        (request, _, _, _, stopwatch), _, snapshot, _, _, profile, learned, _, _ = leg_results.context
        vectors, embedding = leg_results.vectors, leg_results.embedding

        async def rescored() -> Rescored | None:
            with stopwatch.span("particulars"):
                if embedding is not None:
                    await vectors.read(candidates.docs)
                known = candidate_inputs(snapshot.index.memories, vectors, request.query, embedding, candidates)
            with stopwatch.span("rescore"):
                if known is None or learned.rescorer is None:
                    return None
                numbers = candidates.numbers if len(known.ids) == len(candidates.docs) else None
                scores = learned.rescorer.score(evidence, known, numbers)
                return favouring_period(scores, candidates, profile.period_weight)

        if learned.rescorer is None:
            outcome: Rescored | Degradation | None = Degradation(leg="rescorer", reason="the profile has none")
        else:
            outcome = await within_deadline("rescorer", rescored(), self._leg_timeout_s)
        if isinstance(outcome, Degradation):
            leg_results.degraded.append(outcome)
            return None
        return outcome

    async def classify(self, query: str, profile: Profile, stopwatch: Stopwatch) -> IntentPrediction:
        """The intent of a query by the profile's classifier."""
        check_query(query)
        check_storable(query, ("query",))
        learned = await self._model_registry.learned(profile.models)
        request = SearchRequest(query=query)
        embedding = self._embedding(self._embedders.default, request, stopwatch)
        return await self._classify(request, learned.classifier, embedding, stopwatch)

    def _embedding(self, embedder: CachedEmbedder, request: SearchRequest, stopwatch: Stopwatch) -> Embedding:
        return Embedding(embedder, request.query, stopwatch, wanted=request.mode is not Mode.BM25)

    def _embedding_for(self, namespace: Namespace, asked: _Asked) -> Embedding:
        """The query's embedding by the namespace's embedder; the one that has begun if that is the default one."""
        embedder = self._embedders.of(namespace.settings.embedder)
        if embedder is self._embedders.default:
            return asked.default_embedding
        return self._embedding(embedder, asked.request, asked.stopwatch)

    async def _classify(
        self, request: SearchRequest, classifier: IntentClassifier, embedding: Embedding, stopwatch: Stopwatch
    ) -> IntentPrediction:
        if request.intent is not None:
            return stated_intent(request.intent)
        classifier.read_ahead(request.query)  # while the embedding is being computed
        vector = await embedding.or_none(timeout_s=self._leg_timeout_s)
        with stopwatch.span("classify"):
            return classifier.predict(request.query, vector)

    async def _run_leg(
        self, leg: Leg, query: LegQuery, time: NamedTime | None, *, reads: bool
    ) -> LegRanking | Degradation:
        """Run one leg within its deadline; a failure degrades the answer and does not fail the search.

        Where the query asks for the memories of a time, the leg is asked for those too.
        With `reads`, copy the vectors of its hits from the index while other legs still run.
        """
        with query.stopwatch.span(leg.value):
            ranking = await within_deadline(leg.value, self._found(leg, query, time), self._leg_timeout_s)
            if reads and isinstance(ranking, LegRanking):
                query.vectors.take(ranking.docs.tolist())
            return ranking

    async def _found(self, leg: Leg, query: LegQuery, time: NamedTime | None) -> LegRanking:
        """What a leg finds, and what it finds of the time that the query asks for."""
        everything = await self._retrievers[leg].search(query)
        if time is None or not time.certain:
            return everything
        of_time = replace(query, view=query.view._replace(eligible=time.eligible))
        return joined(everything, await self._retrievers[leg].search(of_time), query.fan_out)

    async def _other_rankings(self, running: Mapping[Leg, _RunningLeg]) -> Mapping[Leg, LegRanking]:
        """The rankings of the legs other than the graph's; waits for them at most half a leg's deadline."""
        futures = {leg: future for leg, future in running.items() if leg is not Leg.GRAPH}
        if not all(future.done() for future in futures.values()):
            await asyncio.wait(futures.values(), timeout=self._leg_timeout_s / 2)
        done = {leg: future.result() for leg, future in futures.items() if future.done() and not future.cancelled()}
        return {leg: outcome for leg, outcome in done.items() if isinstance(outcome, LegRanking)}


def _learned_weights(
    leg_results: _LegResults, candidates: Candidates, evidence: QueryPerformanceFeatures
) -> Mapping[str, float] | None:
    """Weights predicted from the legs' scores; None if the weights are explicit or a leg is missing."""
    if leg_results.explicit is not None or len(candidates.rankings) < len(Leg):
        return None
    with leg_results.context.asked.stopwatch.span("weigh"):
        return leg_results.context.learned.leg_weights.weights(evidence)


def _no_answer(degraded: Sequence[Degradation]) -> AllLegsFailed:
    reasons = "; ".join(f"{each.leg}: {each.reason}" for each in degraded)
    return AllLegsFailed(f"no leg that counts answered: {reasons}")


def _named_time(
    request: SearchRequest, snapshot: NamespaceSnapshot, query_terms: QueryTerms, view: SearchView, profile: Profile
) -> NamedTime | None:
    """The time that a query names, if memories are of it and the profile heeds it."""
    memories = snapshot.index.memories
    return NamedTime.from_query(request.query, query_terms, memories, view, profile.period_weight)


def _query_terms(request: SearchRequest, language: str) -> QueryTerms:
    asked_at = request.query_timestamp or request.as_of or datetime.now(UTC)
    return QueryTerms.from_query(request.query, language, asked_at=asked_at)


def _weighing_legs(
    explicit: Weighting | None, profile: Profile, request: SearchRequest, *, missing: Collection[str]
) -> list[Leg]:
    """The mode's legs, without missing ones, that any applicable recipe gives a weight above 0."""
    recipes = (explicit.recipe,) if explicit else profile.recipes
    legs = [leg for leg in request.mode.legs if leg.value not in missing]
    return [leg for leg in legs if any(recipe.weights[leg] > 0 for recipe in recipes)]


def _legs_fan_out(explicit: Weighting | None, profile: Profile, asked: _Asked) -> int:
    """Hits asked of each leg: enough for whatever intent is predicted."""
    return _fan_out(explicit.recipe.fan_out if explicit else profile.fan_out, asked)


def _fan_out(wanted: int, asked: _Asked) -> int:
    """The recipe's fan-out, but at least twice `top_k`, so that duplicates do not shorten the answer.

    What may not be shown is asked for in addition.
    """
    hidden = len(asked.request.exclude.ids) + min(len(asked.conversation), MOST_SAID_BEFORE)
    return max(wanted, 2 * asked.request.top_k) + hidden
