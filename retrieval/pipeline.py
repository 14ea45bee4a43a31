"""Classify -> legs side by side -> weigh by what they found -> cut noise -> fuse -> rescore -> select."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from classifier.evidence import Evidence
from classifier.inference import IntentClassifier, IntentPrediction
from classifier.rescorer import Rescored
from retrieval.candidates import Candidates
from retrieval.embedding.cache import CachedEmbedder
from retrieval.embedding.of_query import Embedding
from retrieval.errors import AllLegsFailed, LegTimedOut
from retrieval.ids import uuid7
from retrieval.legs.base import Hit, LegQuery, LegRanking, Retriever
from retrieval.legs.linked import Linked, Linker
from retrieval.legs.looked import Looked
from retrieval.mirror.mirror import Mirror
from retrieval.mirror.registry import Mirrors, Standing
from retrieval.mirror.vectors import Vectors
from retrieval.model_shelf import Learned, ModelShelf
from retrieval.noise import above_noise, heads
from retrieval.parsing import check_storable
from retrieval.profile_book import ProfileBook
from retrieval.profiles import Profile
from retrieval.reading import Reading
from retrieval.rescoring import favouring_period, particulars_of
from retrieval.selection import Found, Limits, select
from retrieval.stopwatch import Stopwatch
from retrieval.store import memories
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.types import Degradation, Leg, Mode, SearchRequest
from retrieval.weighting import (
    Weighting,
    adaptive_weighting,
    certain,
    check_weights,
    evidence_of,
    explicit_weighting,
    refined,
    wants_rescoring,
)

log = logging.getLogger(__name__)


MOST_AT_ONCE = 8
"""Searches that a process answers at a time, each on a megabyte or two; others wait once they know their namespace.

Eight keep an event loop busy: of 64 clients they answer 300 searches a second, where 16 answer 270 and take 8 MB more.
"""


class _Ground(NamedTuple):
    """What a query stands on before anything is asked."""

    standing: Standing
    looked: Looked
    profile: Profile
    learned: Learned
    among: NDArray[np.int64] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """What the legs and the classifier said of a query.

    `explicit` is the weighting where it does not depend on the query, `embedding` the query's where it has one, and
    `vectors` those of memories that legs have read.
    """

    standing: Standing
    profile: Profile
    learned: Learned
    explicit: Weighting | None
    prediction: IntentPrediction
    embedding: NDArray[np.float32] | None
    vectors: Vectors
    rankings: Mapping[Leg, LegRanking]
    degraded: list[Degradation]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a search found, best first, and how.

    `mirror` is what is known of the namespace. `ranked` is what the legs answered, `rankings` what of it is
    above their noise, as it was fused; `trusted` are the weights that this asks for, and `rescored` what the rescorer
    says, where they have a say.
    """

    namespace: Namespace
    mirror: Mirror
    found: Sequence[Found]
    prediction: IntentPrediction
    evidence: Evidence
    trusted: Mapping[str, float] | None
    rescored: Rescored | None
    weighting: Weighting
    profile: Profile
    rrf_k: float
    fan_out: int
    ranked: Mapping[Leg, LegRanking]
    rankings: Mapping[Leg, LegRanking]
    degraded: Sequence[Degradation]
    stopwatch: Stopwatch
    search_id: str = field(default_factory=uuid7)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """What the memories of an answer are chosen by, whatever is left of the rankings."""

    candidates: Candidates
    weighting: Weighting
    rrf_k: float
    rescored: Rescored | None
    reading: Reading
    vectors: Vectors
    limits: Limits
    stopwatch: Stopwatch

    async def of(self, rankings: Mapping[Leg, LegRanking]) -> list[Found]:
        """The memories that the rankings together put first, and the rescorer where it has a say."""
        with self.stopwatch.span("fuse"):
            fused = self.candidates.fused(rankings, self.weighting.weights, rrf_k=self.rrf_k)
            order = self.candidates.ordered(fused, self.rescored)
        with self.stopwatch.span("hydrate"):
            return await select(self.reading, order, self.candidates, rankings, self.vectors, self.limits)


class Pipeline:
    """Answers searches. It holds no state of its own beyond its parts."""

    def __init__(
        self,
        *,
        pool: Pool,
        mirrors: Mirrors,
        embedder: CachedEmbedder,
        book: ProfileBook,
        shelf: ModelShelf,
        retrievers: Mapping[Leg, Retriever],
        leg_timeout_s: float,
        prompt: Collection[Leg] = (),
    ) -> None:
        """Ask these parts.

        Args:
            pool: of the database.
            mirrors: what is known of the namespaces.
            embedder: of the queries.
            book: has the profiles.
            shelf: has their models.
            retrievers: the legs.
            leg_timeout_s: deadline of each leg, seconds.
            prompt: legs that wait for nothing but the query's embedding; where that is there, they need no task.
        """
        self._pool = pool
        self._mirrors = mirrors
        self._linker = Linker(pool)
        self._embedder = embedder
        self._book = book
        self._shelf = shelf
        self._retrievers = retrievers
        self._leg_timeout_s = leg_timeout_s
        self._prompt = frozenset(prompt)
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def search(self, name: str, request: SearchRequest, stopwatch: Stopwatch) -> Answer:
        """Find the memories of a namespace that answer a query.

        Raises:
            NotFound: no namespace of that name.
            InvalidInput: weights or strings that cannot be used, an unknown profile.
            AllLegsFailed: none of the mode's legs answered.
        """
        check_storable(request)
        check_weights(request.weights)
        embedding = self._embedding(request, stopwatch)
        with self._linked(name, request) as linked:
            ground = await self._ground(name, request, stopwatch)
            async with self._turns:
                heard = await self._ask(ground, request, embedding, linked, stopwatch)
                return await self._answer(heard, request, stopwatch)

    async def _answer(self, heard: Heard, request: SearchRequest, stopwatch: Stopwatch) -> Answer:
        """Make an answer of what the legs found."""
        prediction, profile = heard.prediction, heard.profile
        weighting = heard.explicit or adaptive_weighting(prediction, profile)
        if not any(weighting.weights[leg] > 0 for leg in heard.rankings):  # an intent's may count on one leg alone
            raise _no_answer(heard.degraded)
        fan_out = _fan_out(weighting.recipe.fan_out, request)
        rrf_k = request.rrf_k or weighting.recipe.rrf_k
        candidates = Candidates.of(heads(heard.rankings, fan_out))
        limits, rescores = Limits.of(request, profile), wants_rescoring(request, profile)
        async with Reading(self._pool, heard.standing.namespace.ns) as reading:
            wants_vectors = rescores or limits.diversity
            if not wants_vectors or heard.vectors.take(candidates.docs):  # else these need a connection first
                likely = candidates.fused(candidates.rankings, weighting.weights, rrf_k=rrf_k)
                await reading.begin(candidates.docs_of(likely, limits.read_ahead(rescores=rescores)))
            evidence = evidence_of(request.query, candidates, prediction)
            rescored = await self._rescore(heard, request.query, candidates, evidence, stopwatch) if rescores else None
            trusted = _trusted(heard, candidates, evidence, stopwatch)
            if trusted is not None:
                familiarity = rescored.familiarity if rescored else 1.0
                weighting = refined(weighting, trusted, profile, familiarity=familiarity)
            choice = _Choice(
                candidates=candidates,
                weighting=weighting,
                rrf_k=rrf_k,
                rescored=rescored,
                reading=reading,
                vectors=heard.vectors,
                limits=limits,
                stopwatch=stopwatch,
            )
            listened: Mapping[Leg, LegRanking] = above_noise(candidates.rankings, profile, enough=limits.wanted)
            found = await choice.of(listened)
            if len(found) < limits.top_k and listened != candidates.rankings:  # duplicates took the places of the cut
                listened = candidates.rankings
                found = await choice.of(listened)
        return Answer(
            namespace=heard.standing.namespace,
            mirror=heard.standing.mirror,
            found=found,
            prediction=prediction,
            evidence=evidence,
            trusted=trusted,
            rescored=rescored,
            weighting=weighting,
            profile=profile,
            rrf_k=rrf_k,
            fan_out=fan_out,
            ranked=candidates.rankings,
            rankings=listened,
            degraded=heard.degraded,
            stopwatch=stopwatch,
        )

    async def _ground(self, name: str, request: SearchRequest, stopwatch: Stopwatch) -> _Ground:
        """The namespace as of now, and what the query is answered by."""
        with stopwatch.span("namespace"):
            standing, looked = await self._standing(name, request)
            profile = await self._book.find(request.profile or standing.namespace.settings.profile)
            learned = await self._shelf.learned(profile.models)
            among = await self._with_metadata(standing.mirror, request)
        return _Ground(standing, looked, profile, learned, among)

    async def _ask(
        self, ground: _Ground, request: SearchRequest, embedding: Embedding, linked: Linked, stopwatch: Stopwatch
    ) -> Heard:
        """Ask the classifier and the legs, all side by side."""
        standing, looked, profile, learned, among = ground
        explicit = explicit_weighting(request.mode, request.weights, profile)
        recipes = (explicit.recipe,) if explicit else profile.recipes
        legs = [leg for leg in request.mode.legs if any(recipe.weights[leg] > 0 for recipe in recipes)]
        running: dict[Leg, asyncio.Future[LegRanking | Degradation]] = {}
        query = LegQuery(
            standing=standing,
            text=request.query,
            looked=looked,
            embedding=embedding,
            filters=request.filters,
            as_of=request.as_of,
            include_superseded=request.include_superseded,
            among=among,
            fan_out=_fan_out(explicit.recipe.fan_out if explicit else profile.fan_out, request),
            ef_search=request.ef_search,
            max_hops=profile.hops if request.max_hops is None else request.max_hops,
            min_similarity=request.min_similarity,
            explain=request.explain,
            vectors=Vectors(self._pool, standing.mirror),
            profile=profile,
            rules=standing.namespace.settings.graph_rules(),
            linked=linked,
            others=partial(self._others, running),
            patience_s=self._leg_timeout_s / 4,
            stopwatch=stopwatch,
        )
        here = [leg for leg in legs if leg in self._prompt and embedding.is_there]
        reads = wants_rescoring(request, profile)
        async with asyncio.TaskGroup() as group:
            for leg in legs:
                if leg in here:
                    running[leg] = asyncio.get_running_loop().create_future()
                else:
                    running[leg] = group.create_task(self._run_leg(leg, query, stopwatch, reads=reads))
            await asyncio.sleep(0)  # what those with a task ask of the database is on its way from here on
            for leg in here:
                running[leg].set_result(await self._run_leg(leg, query, stopwatch, reads=reads))
            prediction = await self._classify(request, learned.classifier, embedding, stopwatch)
        vector = await embedding.or_none(timeout_s=0)
        outcomes = {leg: asked.result() for leg, asked in running.items()}
        rankings = {leg: outcome for leg, outcome in outcomes.items() if isinstance(outcome, LegRanking)}
        degraded = [outcome for outcome in outcomes.values() if isinstance(outcome, Degradation)]
        if not rankings:
            raise _no_answer(degraded)
        return Heard(
            standing=standing,
            profile=profile,
            learned=learned,
            explicit=explicit,
            prediction=prediction,
            embedding=vector,
            vectors=query.vectors,
            rankings=rankings,
            degraded=degraded,
        )

    async def _standing(self, name: str, request: SearchRequest) -> tuple[Standing, Looked]:
        """The namespace as of now, and what the query looks for in it by terms."""
        asked_at = request.query_timestamp or request.as_of or datetime.now(UTC)
        looked: dict[str, Looked] = {}

        def terms(language: str) -> Sequence[int]:
            if language not in looked:
                looked[language] = Looked.of(request.query, language, asked_at=asked_at)
            return looked[language].numbers

        standing = await self._mirrors.current(name, terms)
        return standing, looked[standing.namespace.settings.language]

    async def _with_metadata(self, mirror: Mirror, request: SearchRequest) -> NDArray[np.int64] | None:
        """The memories that meet the one filter that a mirror does not know; None where it is not in use."""
        wanted = request.filters.metadata
        if not wanted:
            return None
        known = mirror.with_metadata(wanted)
        if known is None:
            changed = mirror.changed
            async with self._pool.connection() as conn:
                known = await memories.with_metadata(conn, mirror.ns, wanted)
            mirror.keep_metadata(wanted, known, changed=changed)
        return known

    async def _rescore(
        self,
        heard: Heard,
        query: str,
        candidates: Candidates,
        evidence: Evidence,
        stopwatch: Stopwatch,
    ) -> Rescored | None:
        """What the rescorer makes of the candidates; its failure is its own, as a leg's is."""
        if heard.learned.rescorer is None:
            heard.degraded.append(Degradation(leg="rescorer", reason="the profile has none"))
            return None
        try:
            with stopwatch.span("particulars"):
                if heard.embedding is not None:
                    async with asyncio.timeout(self._leg_timeout_s):
                        await heard.vectors.read(candidates.docs)
                known = particulars_of(
                    heard.standing.mirror.memories, heard.vectors, query, heard.embedding, candidates
                )
            with stopwatch.span("rescore"):
                if known is None:
                    return None
                at = candidates.at if known.ids is candidates.ids else None
                rescored = heard.learned.rescorer.score(evidence, known, at)
                return favouring_period(rescored, candidates.rankings, heard.profile.period_weight)
        except TimeoutError:
            reason = f"{LegTimedOut.__doc__} ({self._leg_timeout_s:g} s)"
        except Exception as exc:
            log.exception("the rescorer failed")
            reason = _in_a_line(exc)
        heard.degraded.append(Degradation(leg="rescorer", reason=reason))
        return None

    async def classify(self, query: str, profile: Profile, stopwatch: Stopwatch) -> IntentPrediction:
        """The intent of a query, as the profile's classifier reads it."""
        check_storable(query, ("query",))
        learned = await self._shelf.learned(profile.models)
        request = SearchRequest(query=query)
        embedding = self._embedding(request, stopwatch)
        return await self._classify(request, learned.classifier, embedding, stopwatch)

    def _embedding(self, request: SearchRequest, stopwatch: Stopwatch) -> Embedding:
        return Embedding(self._embedder, request.query, stopwatch, wanted=request.mode is not Mode.BM25)

    def _linked(self, name: str, request: SearchRequest) -> Linked:
        ahead = self._mirrors.last(name) if Leg.GRAPH in request.mode.legs else None
        return Linked(self._linker, request.query, ahead=ahead)

    async def _classify(
        self, request: SearchRequest, classifier: IntentClassifier, embedding: Embedding, stopwatch: Stopwatch
    ) -> IntentPrediction:
        if request.intent is not None:
            return certain(request.intent)
        classifier.read_ahead(request.query)  # while the embedding is on its way
        vector = await embedding.or_none(timeout_s=self._leg_timeout_s)
        with stopwatch.span("classify"):
            return classifier.predict(request.query, vector)

    async def _run_leg(
        self, leg: Leg, query: LegQuery, stopwatch: Stopwatch, *, reads: bool
    ) -> LegRanking | Degradation:
        """One leg within its deadline; its failure is its own and never the query's.

        With `reads`, the vectors of what it found are read while other legs are still at it.
        """
        try:
            with stopwatch.span(leg.value):
                async with asyncio.timeout(self._leg_timeout_s):
                    ranking = await self._retrievers[leg].search(query)
                    if reads:
                        query.vectors.take([hit.doc for hit in ranking.hits])
                    return ranking
        except TimeoutError:
            reason = f"{LegTimedOut.__doc__} ({self._leg_timeout_s:g} s)"
        except Exception as exc:
            log.exception("leg %s failed", leg)
            reason = _in_a_line(exc)
        return Degradation(leg=leg.value, reason=reason)

    async def _others(
        self, running: Mapping[Leg, asyncio.Future[LegRanking | Degradation]]
    ) -> Mapping[Leg, Sequence[Hit]]:
        """What the legs that wait for no other have found, once they have; half a deadline at most is waited."""
        asked = {leg: outcome for leg, outcome in running.items() if leg is not Leg.GRAPH}
        if not all(outcome.done() for outcome in asked.values()):
            await asyncio.wait(asked.values(), timeout=self._leg_timeout_s / 2)
        done = {leg: outcome.result() for leg, outcome in asked.items() if outcome.done() and not outcome.cancelled()}
        return {leg: outcome.hits for leg, outcome in done.items() if isinstance(outcome, LegRanking)}


def _trusted(
    heard: Heard, candidates: Candidates, evidence: Evidence, stopwatch: Stopwatch
) -> Mapping[str, float] | None:
    """The weights that what was found asks for; None where they do not depend on that, or a leg is missing."""
    if heard.explicit is not None or len(candidates.rankings) < len(Leg):
        return None
    with stopwatch.span("weigh"):
        return heard.learned.trust.weights(evidence)


def _no_answer(degraded: Sequence[Degradation]) -> AllLegsFailed:
    reasons = "; ".join(f"{each.leg}: {each.reason}" for each in degraded)
    return AllLegsFailed(f"no leg that counts answered: {reasons}")


def _in_a_line(exc: Exception) -> str:
    return f"{type(exc).__name__}: {str(exc).partition(chr(10))[0]}"


def _fan_out(wished: int, request: SearchRequest) -> int:
    """How long rankings are: as long as wished, and long enough that duplicates do not cut the answer short."""
    return max(wished, 2 * request.top_k)
