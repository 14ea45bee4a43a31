"""Trivet in one object: what the HTTP server and the command line call."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from classifier.inference import IntentClassifier
from classifier.trust import LegTrust
from retrieval.answers import as_search, context_response, pack_candidates, search_response
from retrieval.embedding.cache import CachedEmbedder
from retrieval.embedding.onnx import OnnxEmbedder
from retrieval.errors import InvalidInput, NotFound, StoreUnavailable
from retrieval.ingest import Ingest
from retrieval.legs.bm25 import Bm25Retriever
from retrieval.legs.graph import GraphRetriever
from retrieval.legs.vector import VectorRetriever
from retrieval.models_dir import models_dir
from retrieval.pack import pack
from retrieval.parsing import check_storable
from retrieval.pipeline import Answer, Pipeline
from retrieval.profiles import PROFILES, Profile, find_profile
from retrieval.selection import Limits, within_cap
from retrieval.settings import Settings
from retrieval.stopwatch import Stopwatch
from retrieval.store import compaction, memories, migrate, namespaces, statistics
from retrieval.store.embedded import running
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

_NAME = re.compile(r"[\w.:@+\-]{1,128}")


class Trivet:
    """An open Trivet. Make it with `Trivet.open`."""

    def __init__(
        self, *, settings: Settings, url: str, pool: Pool, embedder: CachedEmbedder, profiles: Mapping[str, Profile]
    ) -> None:
        models = models_dir()
        self.settings = settings
        self.embedder = embedder
        self._url = url
        self._pool = pool
        self._profiles = profiles
        self._ingest = Ingest(pool, embedder)
        self._count_tokens = TokenCounter(models / "embedder.tokenizer.json").count
        self._pipeline = Pipeline(
            pool=pool,
            embedder=embedder,
            classifier=IntentClassifier(models / "intent.onnx"),
            trust=LegTrust(models / "weights.onnx"),
            retrievers={
                Leg.VECTOR: VectorRetriever(pool),
                Leg.BM25: Bm25Retriever(pool),
                Leg.GRAPH: GraphRetriever(pool),
            },
            profiles=profiles,
            leg_timeout_s=settings.leg_timeout_s,
        )

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, *, profiles: Mapping[str, Profile] = PROFILES) -> AsyncIterator[Trivet]:
        """Start or reach the database, migrate it, load the models; close all of it at the end.

        `profiles` are those that requests may name.

        Raises:
            StoreError: the database cannot be started, reached or migrated.
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
            yield cls(settings=settings, url=url, pool=pool, embedder=embedder, profiles=profiles)

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
        _check_name(name)
        check_storable(settings)
        resolve_language(settings.language)
        find_profile(settings.profile, self._profiles)
        settings.graph_rules()
        async with self._pool.connection() as conn:
            await namespaces.put(conn, name, settings)
        return await self.get_namespace(name)

    async def get_namespace(self, name: str) -> NamespaceInfo:
        """A namespace with its counts.

        Raises:
            NotFound: there is none of that name.
        """
        _check_name(name)
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
        _check_name(name)
        async with self._pool.connection() as conn:
            return await namespaces.delete(conn, name)

    async def add(self, namespace: str, batch: Sequence[MemoryInput | InvalidInput]) -> list[AddResult]:
        """Add or replace memories; a bad one is rejected alone. All legs see them when this returns."""
        _check_name(namespace)
        return await self._ingest.add(namespace, batch)

    async def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory.

        Raises:
            NotFound: no such namespace or memory.
        """
        _check_name(namespace)
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
        _check_name(namespace)
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
        _check_name(namespace)
        check_storable(memory_id, ("id",))
        return await self._ingest.patch(namespace, memory_id, patch)

    async def delete(self, namespace: str, memory_id: str) -> None:
        """Delete a memory from every leg.

        Raises:
            NotFound: no such namespace or memory.
        """
        _check_name(namespace)
        check_storable(memory_id, ("id",))
        await self._ingest.delete(namespace, memory_id)

    async def delete_matching(self, namespace: str, filters: Filters) -> int:
        """Delete all memories that meet the filters; how many.

        Raises:
            NotFound: no such namespace.
            InvalidInput: empty filters.
        """
        _check_name(namespace)
        check_storable(filters, ("filters",))
        return await self._ingest.delete_matching(namespace, filters)

    async def search(self, namespace: str, request: SearchRequest) -> SearchResponse:
        """Ranked memories for a query.

        Raises:
            NotFound: no such namespace.
            InvalidInput: a request that cannot be answered.
            AllLegsFailed: no leg answered.
        """
        return search_response(await self.answer(namespace, request), request)

    async def answer(self, namespace: str, request: SearchRequest) -> Answer:
        """What `search` answers from, with all that each leg found: for experiments; raises as `search` does."""
        _check_name(namespace)
        return await self._pipeline.search(namespace, request, Stopwatch())

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
        return context_response(answer, packed, search, request.max_tokens)

    async def classify(self, request: ClassifyRequest) -> ClassifyResponse:
        """The intent of a query and the weights that it alone asks for.

        Raises:
            InvalidInput: an unknown profile.
        """
        stopwatch = Stopwatch()
        profile = find_profile(request.profile, self._profiles)
        prediction = await self._pipeline.classify(request.query, stopwatch)
        weights = adaptive_weighting(prediction, profile).weights
        return ClassifyResponse(
            intent=report(prediction),
            weights={leg.value: round(weight, 4) for leg, weight in weights.items()},
            profile=profile.label,
            timings_ms=stopwatch.timings_ms(),
        )

    async def readiness(self) -> dict[str, bool]:
        """Whether the database answers, the schema is this version's, and the models are loaded."""
        try:
            with translated():
                migrated = not await migrate.pending(self._url)
        except StoreUnavailable:
            return {"database": False, "migrations": False, "models": True}
        return {"database": True, "migrations": migrated, "models": True}

    async def maintain(self) -> None:
        """One pass of housekeeping: pack the namespaces that need it, refresh the planner's statistics."""
        async with self._pool.connection() as conn:
            least = self.settings.bm25_tail_docs
            for ns in await compaction.namespaces_to_compact(conn, least=least):
                await compaction.compact(conn, ns, least=least)
            await statistics.refresh(conn)


def _check_name(name: str) -> None:
    """Refuse a namespace's name that could not be created."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("must be 1 to 128 letters, digits or any of _ . : @ + -", loc=("namespace",))
