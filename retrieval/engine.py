"""Trivet in one object: what the HTTP server and the command line call."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import msgspec

from classifier.candidates import Particulars
from native.crew import Crew
from retrieval.answers import as_search, context_response, pack_candidates, search_response, searched
from retrieval.candidates import Candidates
from retrieval.embedding.cache import CachedEmbedder
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.errors import InvalidInput, NotFound, StoreUnavailable
from retrieval.gate import GateReport
from retrieval.ingest import Ingest
from retrieval.journal import Journal
from retrieval.legs.bm25 import Bm25Retriever
from retrieval.legs.graph import GraphRetriever
from retrieval.legs.vector import VectorRetriever
from retrieval.mirror.registry import Mirrors
from retrieval.mirror.vectors import Vectors
from retrieval.model_shelf import ModelShelf
from retrieval.models_dir import models_dir
from retrieval.pack import pack
from retrieval.parsing import check_storable
from retrieval.pipeline import Answer, Pipeline
from retrieval.profile_book import ProfileBook
from retrieval.profile_types import ProfileShadow
from retrieval.profiles import SHIPPED, Profile
from retrieval.records import Records
from retrieval.rescoring import particulars_of
from retrieval.selection import Found, Limits, within_cap
from retrieval.settings import Settings
from retrieval.shadowing import Shadow
from retrieval.stopwatch import Stopwatch
from retrieval.store import changes, compaction, memories, migrate, namespaces, query_log, shadow, statistics
from retrieval.store.embedded import running
from retrieval.store.namespaces import check_name
from retrieval.store.pool import Pool, open_pool, translated
from retrieval.text.analysis import resolve_language
from retrieval.text.tokens import TokenCounter
from retrieval.types import (
    AddResult,
    ClassifyRequest,
    ClassifyResponse,
    ContextRequest,
    ContextResponse,
    Filters,
    Leg,
    Memory,
    MemoryInput,
    MemoryPage,
    MemoryPatch,
    NamespaceInfo,
    NamespaceReceipt,
    NamespaceSettings,
    SearchRequest,
    SearchResponse,
)
from retrieval.weighting import adaptive_weighting, report

_MOST_THREADS = 4
"""That compare vectors; what they read comes from memory, which more of them do not make faster."""


class Trivet:
    """An open Trivet. Make it with `Trivet.open`."""

    def __init__(
        self,
        *,
        settings: Settings,
        url: str,
        pool: Pool,
        embedder: CachedEmbedder,
        crew: Crew,
        profiles: ProfileBook,
        models: ModelShelf,
    ) -> None:
        self.settings = settings
        self.embedder = embedder
        self._url = url
        self._pool = pool
        self.profiles = profiles
        self.models = models
        self.records = Records(pool)
        self._journal = Journal(pool)
        self._ingest = Ingest(pool, embedder)
        self._count_tokens = TokenCounter(models_dir() / "embedder.tokenizer.json").count
        self._mirrors = Mirrors(pool, most_bytes=settings.mirror_bytes)
        self._pipeline = Pipeline(
            pool=pool,
            mirrors=self._mirrors,
            embedder=embedder,
            book=profiles,
            shelf=models,
            retrievers={
                Leg.VECTOR: VectorRetriever(pool, crew),
                Leg.BM25: Bm25Retriever(),
                Leg.GRAPH: GraphRetriever(pool),
            },
            leg_timeout_s=settings.leg_timeout_s,
            prompt=(Leg.BM25,),
        )
        self._shadow = Shadow(self._pipeline, profiles, self._journal)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, *, profiles: Mapping[str, Profile] | None = None) -> AsyncIterator[Trivet]:
        """Start or reach the database, migrate it, load the models; close all of it at the end.

        `profiles` are some that requests may name besides those of the database; this process alone knows them, and
        they win over those of the same name.

        Raises:
            StoreError: the database cannot be started, reached or migrated.
            InvalidInput: the models of the default profile cannot be opened.
        """
        models = models_dir()
        async with AsyncExitStack() as stack:
            url = settings.database_url
            if settings.uses_embedded:
                url = await stack.enter_async_context(running(settings.data_dir))
            await migrate.migrate(url)
            pool = await stack.enter_async_context(open_pool(url, settings.pool_size))
            onnx = OnnxEmbedder(
                models / "embedder.onnx", models / "embedder.tokenizer.json", document_threads=os.cpu_count() or 1
            )
            embedder = CachedEmbedder(
                onnx, max_entries=settings.embedding_cache_entries, max_age_s=settings.embedding_cache_age_s
            )
            stack.push_async_callback(embedder.aclose)
            await onnx.warm_up()
            shelf = ModelShelf(pool, models)
            book = ProfileBook(pool, shelf, own=profiles)
            for profile in SHIPPED.values():
                await book.ship(profile, _shipped_report(models, profile))
            await shelf.learned((await book.find(None)).models)
            crew = stack.enter_context(closing(Crew(min(os.cpu_count() or 1, _MOST_THREADS))))
            engine = cls(
                settings=settings, url=url, pool=pool, embedder=embedder, crew=crew, profiles=book, models=shelf
            )
            stack.push_async_callback(engine.settle)
            yield engine

    async def list_namespaces(self) -> list[NamespaceInfo]:
        """All namespaces by name."""
        async with self._pool.connection() as conn:
            return list(await namespaces.describe(conn))

    async def put_namespace(self, name: str, settings: NamespaceSettings) -> NamespaceInfo:
        """Create a namespace or change its settings.

        Raises:
            InvalidInput: a bad name, an unknown language or profile, a rule that cannot be used.
            Conflict: the language would change under stored memories.
        """
        check_name(name)
        check_storable(settings)
        resolve_language(settings.language)
        await self.profiles.find(settings.profile)
        settings.graph_rules()
        async with self._pool.connection() as conn:
            await namespaces.put(conn, name, settings)
        return await self.get_namespace(name)

    async def get_namespace(self, name: str) -> NamespaceInfo:
        """A namespace with its counts.

        Raises:
            NotFound: there is none of that name.
        """
        check_name(name)
        async with self._pool.connection() as conn:
            described = await namespaces.describe(conn, name)
        if not described:
            raise NotFound(f"there is no namespace {name!r}")
        return described[0]

    async def delete_namespace(self, name: str) -> NamespaceReceipt:
        """Delete a namespace with everything in it.

        Raises:
            NotFound: there is none of that name.
        """
        check_name(name)
        async with self._pool.connection() as conn:
            return await namespaces.delete(conn, name)

    async def add(self, namespace: str, batch: Sequence[MemoryInput | InvalidInput]) -> list[AddResult]:
        """Add or replace memories; a bad one is rejected alone. All legs see them when this returns."""
        check_name(namespace)
        return await self._ingest.add(namespace, batch)

    async def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory.

        Raises:
            NotFound: no such namespace or memory.
        """
        check_name(namespace)
        check_storable(memory_id, ("id",))
        async with self._pool.connection() as conn:
            found = await namespaces.find(conn, namespace)
            return (await memories.get(conn, found, memory_id)).memory

    async def list(self, namespace: str, filters: Filters, *, cursor: str | None, limit: int) -> MemoryPage:
        """A page of memories in the order of insertion.

        Raises:
            NotFound: no such namespace.
            InvalidInput: a cursor that no page gave.
        """
        check_name(namespace)
        check_storable(filters, ("filters",))
        if cursor is not None and not re.fullmatch(r"[0-9]{1,10}", cursor):
            raise InvalidInput("is not a cursor that an earlier page gave", loc=("cursor",))
        after = -1 if cursor is None else min(int(cursor), 2**31 - 1)
        async with self._pool.connection() as conn:
            found = await namespaces.find(conn, namespace)
            rows = await memories.page(conn, found.ns, filters, after=after, limit=limit + 1)
        more = len(rows) > limit
        return MemoryPage(
            memories=[row.memory for row in rows[:limit]], next_cursor=str(rows[limit - 1].doc) if more else None
        )

    async def patch(self, namespace: str, memory_id: str, patch: MemoryPatch) -> Memory:
        """Change some fields of a memory.

        Raises:
            NotFound: no such namespace or memory.
            InvalidInput: the changed memory is not a valid one.
        """
        check_name(namespace)
        check_storable(memory_id, ("id",))
        return await self._ingest.patch(namespace, memory_id, patch)

    async def delete(self, namespace: str, memory_id: str) -> None:
        """Delete a memory from every leg.

        Raises:
            NotFound: no such namespace or memory.
        """
        check_name(namespace)
        check_storable(memory_id, ("id",))
        await self._ingest.delete(namespace, memory_id)

    async def delete_matching(self, namespace: str, filters: Filters) -> int:
        """Delete all memories that meet the filters; how many.

        Raises:
            NotFound: no such namespace.
            InvalidInput: empty filters.
        """
        check_name(namespace)
        check_storable(filters, ("filters",))
        return await self._ingest.delete_matching(namespace, filters)

    async def search(self, namespace: str, request: SearchRequest) -> SearchResponse:
        """Ranked memories for a query.

        Raises:
            NotFound: no such namespace.
            InvalidInput: a request that cannot be answered.
            AllLegsFailed: no leg answered.
        """
        answer = await self.answer(namespace, request)
        self._log(answer, request, answer.found)
        self._shadow.follow(request, answer)
        return search_response(answer, request)

    def _log(self, answer: Answer, request: SearchRequest, shown: Sequence[Found]) -> None:
        """Have the search written down where the namespace's owner wants that."""
        if answer.namespace.settings.query_log is not None:
            self._journal.searched(answer.namespace, searched(answer, request, shown))

    async def answer(self, namespace: str, request: SearchRequest) -> Answer:
        """What `search` answers from, with all that each leg found: for experiments; raises as `search` does."""
        check_name(namespace)
        return await self._pipeline.search(namespace, request, Stopwatch())

    async def particulars(self, answer: Answer, query: str) -> Particulars | None:
        """What is known of the memories that the legs ranked for a query, as the rescorer is given it: for training."""
        embedding = await self.embedder.embed_query(query)
        vectors = Vectors(self._pool, answer.mirror)
        candidates = Candidates.of(answer.ranked)
        await vectors.read(candidates.docs)
        return particulars_of(answer.mirror.memories, vectors, query, embedding, candidates)

    async def context(self, namespace: str, request: ContextRequest) -> ContextResponse:
        """A context pack for a query or a conversation; raises as `search` does."""
        if request.query is None and not any(message.content.strip() for message in request.messages):
            raise InvalidInput("give a query, or messages with content", loc=("query",))
        search = as_search(request)
        answer = await self.answer(namespace, search)
        cap = Limits.of(request, answer.profile).source_cap
        with answer.stopwatch.span("pack"):
            packed = await asyncio.to_thread(  # counting the tokens of long texts takes its time
                pack,
                pack_candidates(within_cap(answer.found, cap=cap, top_k=request.top_k)),
                max_tokens=request.max_tokens,
                format=request.format,
                order=request.order,
                count=self._count_tokens,
                source_cap=cap,
            )
        cited = {item.id for item in packed.items}
        shown = [found for found in answer.found if found.memory.id in cited]
        self._log(answer, search, shown)
        self._shadow.follow(search, answer)
        return context_response(answer, packed, search, request.max_tokens)

    async def classify(self, request: ClassifyRequest) -> ClassifyResponse:
        """The intent of a query and the weights that it alone asks for.

        Raises:
            InvalidInput: an unknown profile.
        """
        stopwatch = Stopwatch()
        profile = await self.profiles.find(request.profile)
        prediction = await self._pipeline.classify(request.query, profile, stopwatch)
        weights = adaptive_weighting(prediction, profile).weights
        return ClassifyResponse(
            intent=report(prediction),
            weights={leg.value: round(weight, 4) for leg, weight in weights.items()},
            profile=profile.label,
            timings_ms=stopwatch.timings_ms(),
        )

    async def shadow(self, name: str) -> ProfileShadow:
        """What answers beside the live version of a profile, and how the two compare.

        Raises:
            NotFound: there is no profile of that name.
        """
        found = await self.profiles.describe(name)
        compared = None
        if found.shadow is not None and found.live is not None:
            async with self._pool.connection() as conn:
                compared = await shadow.summary(conn, f"{name}@{found.live}", f"{name}@{found.shadow.version}")
        return ProfileShadow(name=name, live=found.live, shadow=found.shadow, compared=compared)

    async def settle(self) -> None:
        """Wait for what searches left to be done beside them: shadow searches, entries of the journal.

        Mirrors that are being made are given up.
        """
        await self._shadow.aclose()
        await self._journal.aclose()
        await self._mirrors.aclose()

    async def readiness(self) -> dict[str, bool]:
        """Whether the database answers, the schema is this version's, and the models are loaded."""
        try:
            with translated():
                migrated = not await migrate.pending(self._url)
        except StoreUnavailable:
            return {"database": False, "migrations": False, "models": True}
        return {"database": True, "migrations": migrated, "models": True}

    async def warm(self) -> None:
        """Read the largest namespaces, so that no query has to wait for it."""
        await self._mirrors.warm()

    async def maintain(self) -> None:
        """One pass of housekeeping: pack the namespaces that need it, refresh the planner's statistics."""
        async with self._pool.connection() as conn:
            least = self.settings.bm25_tail_docs
            for ns in await compaction.namespaces_to_compact(conn, least=least):
                await compaction.compact(conn, ns, least=least)
            await query_log.trim(conn)
            await changes.trim(conn)
            await statistics.refresh(conn)


def _shipped_report(folder: Path, profile: Profile) -> GateReport | None:
    """What was measured of a profile before it was shipped, if that is there and about these parameters."""
    path = folder / f"{profile.name}.gate.json"
    if not path.is_file():
        return None
    report = msgspec.json.decode(path.read_bytes(), type=GateReport)
    return report if report.candidate_sha256 == profile.fingerprint else None
