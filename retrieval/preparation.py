"""What a search needs before its legs run: the namespace as of now, the query's terms, its profile and its models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial

import msgspec
import numpy as np
from msgspec import structs
from msgspec.structs import astuple

from graph.linking import matched_words, possible_names
from retrieval.answer.conversation import Conversation, question_in
from retrieval.embedding.cache import CachedEmbedder, Embedding, MeanEmbedding
from retrieval.embedding.embedders import Embedders
from retrieval.errors import AllLegsFailed
from retrieval.index.registry import IndexRegistry, StillReading
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.legs.base import SearchView
from retrieval.legs.partial import PartialReader
from retrieval.legs.query_terms import QueryTerms
from retrieval.profiles.models import LoadedModels
from retrieval.profiles.profile import Profile, Recipe
from retrieval.profiles.registry import ProfileRegistry
from retrieval.ranking.timeliness import NamedTime, StateOrder
from retrieval.ranking.weighting import Weighting, explicit_weighting, wants_rescoring
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.text.languages import resolve_language
from retrieval.text.misspellings import CORRECTED, Misspelt, misspelt
from retrieval.text.speakers import in_first_person
from retrieval.timings import Stopwatch
from retrieval.types.namespace import DEFAULT_EMBEDDER
from retrieval.types.search import Degradation, Leg, Mode, PackSize, SearchRequest

SPARE_HITS = 10
"""Most hits asked of each of several legs beyond `top_k` (docs/decisions/0050-depth-of-the-legs.md)."""

MOST_SAID_BEFORE = 200
"""Extra hits asked of a leg because the conversation may already contain them."""


class StartedQuery(msgspec.Struct, frozen=True, eq=False):
    """A request, its conversation, and the work started for it immediately.

    Attributes:
        default_embedding: the query's embedding by the default embedder, for namespaces without another and for most
            classifiers.
        pack_size: of the context pack to fill; None for a search.
    """

    request: SearchRequest
    conversation: Conversation
    stopwatch: Stopwatch
    default_embedding: Embedding
    pack_size: PackSize | None

    @property
    def legs(self) -> list[Leg]:
        """The mode's legs with a weight above 0, as far as the request gives weights."""
        weights = self.request.weights
        return [leg for leg in self.request.mode.legs if weights is None or getattr(weights, leg) > 0]

    def fan_out_for(self, wanted: int, profile: Profile) -> int:
        """Hits to ask of a leg if a recipe wants `wanted`: more than `top_k`, as duplicates are left out.

        The deeper several legs rank, the more noise is fused, which is seen in a search's first results; a source cap
        needs that depth to find enough sources. A leg alone fuses none, so for a pack it ranks all that may fill it.
        Adds one for each memory that may not be shown.
        """
        top_k, fuses = self.request.top_k, len(self.legs) > 1
        if self.pack_size is not None and not fuses:
            top_k = max(top_k, self.pack_size.memories)
        sources = top_k // (self.request.source_cap or profile.source_cap or top_k)
        spare = min(top_k, max(sources, SPARE_HITS)) if fuses and self.pack_size is None else top_k
        hidden = len(self.request.exclude.ids) + min(len(self.conversation), MOST_SAID_BEFORE)
        return max(wanted, top_k + spare) + hidden


class PreparedQuery(StartedQuery, frozen=True, eq=False, kw_only=True):
    """A request with everything that a search needs before its legs run.

    Attributes:
        embedding: the query's embedding by the namespace's embedder, for the legs and the rescorer.
        models: the profile's.
        degraded: the legs that cannot run on this snapshot.
        explicit_weighting: the weighting if it does not depend on the query, else None.
        named_time: the memories of the time that the query names, if there are any and the profile weighs time.
        rescores: whether candidates are to be rescored.
        identified: slots of the memories that contain an identifier of the query.
        original_request: as it came; the query of `request` is the question in it, with its misspelt words replaced.
    """

    embedding: Embedding
    snapshot: NamespaceSnapshot
    query_terms: QueryTerms
    view: SearchView
    profile: Profile
    models: LoadedModels
    degraded: Sequence[Degradation]
    explicit_weighting: Weighting | None
    named_time: NamedTime | None
    rescores: bool
    identified: frozenset[int]
    original_request: SearchRequest

    @property
    def classifier_embedding(self) -> Embedding:
        """The query's embedding by the classifier's embedder, with all names."""
        own = self.models.classifier_embedder == self.snapshot.namespace.settings.embedder != DEFAULT_EMBEDDER
        return self.embedding if own else self.default_embedding

    @property
    def state_order(self) -> StateOrder | None:
        """The order by time if the query asks how things are now, or were, and names no time."""
        if self.named_time:  # later statements do not outdate those about a named time
            return None
        memories, periods = self.snapshot.index.memories, self.query_terms.periods
        return StateOrder.from_query(self.request.query, periods, memories, self.profile.period_weight)

    @property
    def recipes(self) -> Sequence[Recipe]:
        """The recipes that the query's weights can be mixed from."""
        return (self.explicit_weighting.recipe,) if self.explicit_weighting else self.profile.recipes

    @property
    def legs(self) -> list[Leg]:
        """The mode's legs that can run and have a weight above 0 in any recipe."""
        missing = {each.leg for each in self.degraded}
        legs = [leg for leg in self.request.mode.legs if leg.value not in missing]
        return [leg for leg in legs if any(recipe.weights[leg] > 0 for recipe in self.recipes)]

    @property
    def fan_out(self) -> int:
        """Hits asked of each leg: enough for any predicted intent."""
        return self.fan_out_for(max(recipe.fan_out for recipe in self.recipes), self.profile)


class Preparation:
    """Prepares requests for the legs."""

    def __init__(
        self,
        *,
        pool: Pool,
        indexes: IndexRegistry,
        embedders: Embedders,
        profile_registry: ProfileRegistry,
        timeout_s: float,
    ) -> None:
        """Wait at most `timeout_s` seconds for a namespace that is still being loaded."""
        self._indexes = indexes
        self._embedders = embedders
        self._profile_registry = profile_registry
        self._timeout_s = timeout_s
        self._partial = PartialReader(pool, leg_timeout_s=timeout_s)

    async def prepare(
        self,
        name: str,
        request: SearchRequest,
        conversation: Conversation,
        stopwatch: Stopwatch,
        pack_size: PackSize | None,
    ) -> PreparedQuery:
        """Prepare a request to a namespace, brought up to date; keep the view until the answer is complete.

        While a namespace is loading, only what the query needs is read. Raises NotFound if there is no such namespace,
        InvalidInput for an unknown profile, AllLegsFailed if the namespace is loading and the database does not answer
        in time.
        """
        original_request, request = request, structs.replace(request, query=question_in(request.query))
        default_embedding = self._embedding(self._embedders.default, request, stopwatch)
        started = StartedQuery(request, conversation, stopwatch, default_embedding, pack_size)
        degraded: Sequence[Degradation] = ()
        with stopwatch.span("namespace"):
            try:
                snapshot, query_terms = await self._snapshot(name, request)
                if words := _misspelt(snapshot, query_terms, request.query):
                    await self._indexes.read_vocabulary(snapshot.index)
                    also = _occurring(snapshot, words)
                    snapshot, query_terms = await self._snapshot(name, request, also=also)  # the former is outdated
                    if meant := _respelt(snapshot, words, request.query):
                        request = structs.replace(request, query=meant)
                        default_embedding = self._embedding(self._embedders.default, request, stopwatch)
                        started = structs.replace(started, request=request, default_embedding=default_embedding)
                        snapshot, query_terms = await self._snapshot(name, request)
            except StillReading as reading:
                snapshot, query_terms, degraded = await self._read_part(reading.namespace, started)
            view = SearchView.from_request(snapshot, request)  # before anything else is awaited
            profile, models = await self._profile_and_models(snapshot.namespace, request)
        rescores = wants_rescoring(request, profile)
        return PreparedQuery(
            *astuple(started),
            embedding=self._search_embedding(snapshot, started),
            snapshot=snapshot,
            query_terms=query_terms,
            view=view,
            profile=profile,
            models=models,
            degraded=degraded,
            explicit_weighting=explicit_weighting(request.mode, request.weights, profile),
            named_time=NamedTime.from_query(request.query, query_terms, snapshot, view, profile.period_weight),
            rescores=rescores,
            identified=query_terms.identified(snapshot.postings, view.visible) if rescores else frozenset(),
            original_request=original_request,
        )

    async def _read_part(
        self, namespace: Namespace, started: StartedQuery
    ) -> tuple[NamespaceSnapshot, QueryTerms, Sequence[Degradation]]:
        """The part of a loading namespace that a query needs; the whole namespace if only the graph leg runs."""
        request = started.request
        if request.mode is Mode.GRAPH:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return *await self._snapshot(namespace.name, request, waits=True), ()
            except TimeoutError as exc:
                raise AllLegsFailed("graph: the namespace is still being read") from exc
        query_terms = _query_terms(request, namespace.settings.language)
        query_terms = replace(query_terms, session=None)  # sessions cannot be counted in a part of the memories
        profile, _ = await self._profile_and_models(namespace, request)
        embedding, fan_out = self._embedding_for(namespace, started), started.fan_out_for(profile.fan_out, profile)
        try:
            snapshot, degraded = await self._partial.read(
                namespace, request, query_terms, profile, embedding, fan_out=fan_out
            )
        except TimeoutError as exc:
            raise AllLegsFailed("the namespace is still being read, and the database does not answer in time") from exc
        return snapshot, query_terms, degraded

    async def _profile_and_models(self, namespace: Namespace, request: SearchRequest) -> tuple[Profile, LoadedModels]:
        """The profile of a query, and its models."""
        profile = await self._profile_registry.find(request.profile or namespace.settings.profile)
        return profile, await self._profile_registry.models.load(profile.models, namespace.settings.embedder)

    def _embedding(self, embedder: CachedEmbedder, request: SearchRequest, stopwatch: Stopwatch) -> Embedding:
        """The query's embedding, started unless the request's mode needs none."""
        return Embedding(embedder, request.query, stopwatch, wanted=request.mode is not Mode.BM25)

    def _embedding_for(self, namespace: Namespace, started: StartedQuery) -> Embedding:
        """The query's embedding by the namespace's embedder; the running one if that is the default."""
        embedder = self._embedders.get(namespace.settings.embedder)
        if embedder is self._embedders.default:
            return started.default_embedding
        return self._embedding(embedder, started.request, started.stopwatch)

    def _search_embedding(self, snapshot: NamespaceSnapshot, started: StartedQuery) -> Embedding:
        """The query's embedding; of one in English by the bundled embedder, halfway to that in the first person.

        The vector of a turn tells above all who speaks, so a name in the query finds any short turn of that speaker,
        while "I" finds what is said of oneself. In other languages names are most of what this embedder understands
        (docs/decisions/0052-names-in-embeddings.md).
        """
        embedding, request = self._embedding_for(snapshot.namespace, started), started.request
        memories, query = snapshot.index.memories, request.query
        if snapshot.namespace.settings.embedder != DEFAULT_EMBEDDER:
            return embedding
        said = in_first_person(query, [memories.speakers.values[code] for code in memories.speakers_named(query)])
        if said == query:
            return embedding
        other = self._embedding(self._embedders.default, structs.replace(request, query=said), started.stopwatch)
        return MeanEmbedding(embedding, other)

    async def _snapshot(
        self, name: str, request: SearchRequest, *, also: Sequence[int] = (), waits: bool = False
    ) -> tuple[NamespaceSnapshot, QueryTerms]:
        """The namespace brought up to date and the query's terms; raises as `IndexRegistry.current` does.

        The postings are those of these terms and of those in `also`.
        """
        terms_in = cache(partial(_query_terms, request))  # the language is known only with the namespace
        snapshot = await self._indexes.current(
            name, lambda language: [*terms_in(language).terms, *also], request.filters.metadata, waits=waits
        )
        found = terms_in(snapshot.namespace.settings.language)
        return found.with_period_docs(snapshot), found


def _query_terms(request: SearchRequest, language: str) -> QueryTerms:
    asked_at = request.query_timestamp or request.as_of or datetime.now(UTC)
    return QueryTerms.from_query(request.query, language, asked_at=asked_at)


def _misspelt(snapshot: NamespaceSnapshot, query_terms: QueryTerms, query: str) -> Sequence[Misspelt]:
    """The words of a query that no memory has and that look misspelt."""
    language = resolve_language(snapshot.namespace.settings.language)
    unknown = {text for term, text in query_terms.terms.items() if term not in snapshot.postings.terms}
    return misspelt(query, unknown, language) if unknown and language in CORRECTED else ()


def _occurring(snapshot: NamespaceSnapshot, words: Sequence[Misspelt]) -> list[int]:
    """The terms that may be meant and that memories have, or had before they were deleted."""
    terms = np.concatenate([word.terms for word in words])
    return [*terms[snapshot.index.terms.occurrences(terms) > 0].tolist()]


def _respelt(snapshot: NamespaceSnapshot, words: Sequence[Misspelt], query: str) -> str | None:
    """The query with its misspelt words replaced by those meant, which memories have; None if there are none."""
    index, occurring, meant = snapshot.index, snapshot.postings.terms, query
    counts = {term: postings.docs.size for term, postings in occurring.items()}
    found = [(word, word.best(counts, index.names.are_words)) for word in reversed(words)]
    # An alias, or a name that a caller gave, need not be in a text.
    named = matched_words(index.named_in(possible_names(query))) if any(best for _, best in found) else ()
    for word, best in found:
        if best and word.word.lower() not in named:
            start, end = word.span
            meant = f"{meant[:start]}{best}{meant[end:]}"
    return None if meant == query else meant
