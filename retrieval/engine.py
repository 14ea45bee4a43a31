"""Trivet as one object, used by the HTTP server and the command line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace

from classifier.candidates import CandidateInputs
from native.worker_pool import WorkerPool
from postgres.connection import Connection
from retrieval.answer.answer import Answer
from retrieval.answer.conversation import Conversation, question_in, said_in, texts_in
from retrieval.answer.packer import pack_answer
from retrieval.answer.response import answered_search, as_search, context_response, search_response, unknown_namespace
from retrieval.answer.selection import RankedMemory
from retrieval.concurrent_legs import ConcurrentLegs
from retrieval.doctor import check_database, check_models
from retrieval.documents.service import DocumentService
from retrieval.embedding import multilingual
from retrieval.embedding.cache import CachedEmbedder
from retrieval.embedding.embedders import Embedders, embedder_fault, multilingual_embedder, remote_embedder
from retrieval.embedding.onnx import MODEL_FILE, OnnxEmbedder, load_model
from retrieval.entities.service import EntityService
from retrieval.errors import InvalidInput, ModelFileError, NamespaceNotFound, NotFound, StoreUnavailable
from retrieval.index.files import IndexFiles
from retrieval.index.query_vectors import QueryVectors
from retrieval.index.registry import IndexRegistry
from retrieval.ingest.service import Ingest
from retrieval.installation import REMEDY, models_dir
from retrieval.intents import IntentPredictor
from retrieval.journal.service import JournalService
from retrieval.journal.writer import JournalWriter
from retrieval.legs.base import Retriever
from retrieval.legs.bm25 import Bm25Retriever
from retrieval.legs.graph import GraphRetriever
from retrieval.legs.vector import VectorRetriever
from retrieval.lifecycle.jobs import Jobs
from retrieval.lifecycle.outdated import OutdatedMemories
from retrieval.lifecycle.reembedding import Reembedding
from retrieval.lifecycle.service import LifeCycle
from retrieval.machine import processors
from retrieval.pipeline import Pipeline
from retrieval.preparation import Preparation
from retrieval.profiles.gate import GateReport
from retrieval.profiles.models import ModelRegistry, load_file
from retrieval.profiles.profile import DEFAULT, SHIPPED, Profile
from retrieval.profiles.registry import ProfileRegistry
from retrieval.profiles.schema import ProfileShadow
from retrieval.ranking.rescoring import candidate_inputs
from retrieval.ranking.weighting import adaptive_weighting, intent_to_wire
from retrieval.settings import Settings
from retrieval.shadow import Shadow
from retrieval.store import changes, memories, migrate, namespaces, query_log, shadow, statistics, vector_index
from retrieval.store.bm25 import compaction
from retrieval.store.embedded.instance import EmbeddedPostgres
from retrieval.store.namespaces import check_name, check_new_name
from retrieval.store.pool import Pool, connect, open_pool, translated
from retrieval.tasks import in_thread_if_long
from retrieval.text.analysis import resolve_language
from retrieval.text.word_pieces import TOKENIZER_FILE
from retrieval.timings import Stopwatch
from retrieval.types.memory import (
    MAX_COMPARED,
    AddResult,
    Memory,
    MemoryInput,
    MemoryPage,
    MemoryPatch,
    SharedPatch,
    UpdateReceipt,
)
from retrieval.types.namespace import NamespaceInfo, NamespaceInput, NamespaceReceipt, NamespaceSettings
from retrieval.types.search import (
    NO_FILTERS,
    ClassifyRequest,
    ClassifyResponse,
    ContextRequest,
    ContextResponse,
    Filters,
    Leg,
    PackSize,
    SearchRequest,
    SearchResponse,
)
from retrieval.types.state import ServerState
from retrieval.validation import check_storable, cursor_position

log = logging.getLogger(__name__)

_MOST_THREADS = 4
"""Threads that compare vectors; the scan is bound by memory bandwidth, so more are not faster."""


class Trivet:
    """A running Trivet; create it with `Trivet.open`."""

    def __init__(
        self,
        *,
        settings: Settings,
        url: str,
        pool: Pool,
        embedders: Embedders,
        workers: WorkerPool,
        profiles: ProfileRegistry,
        files: IndexFiles | None,
        postgres: EmbeddedPostgres | None,
    ) -> None:
        self.settings = settings
        self.postgres = postgres
        self.embedders = embedders
        self._url = url
        self._pool = pool
        self.profiles = profiles
        self.models = profiles.models
        self._journal_writer = JournalWriter(pool)
        self.journal = JournalService(pool, self._journal_writer)
        self._files = files
        self._indexes = IndexRegistry(pool, most_bytes=settings.index_bytes, files=files)
        self._ingest = Ingest(pool, embedders, announce=self._indexes.expect_changes)
        self.documents = DocumentService(pool, self._ingest, embedders)
        self.lifecycle = LifeCycle(pool, self._ingest, url)
        self._outdated = OutdatedMemories(pool, self._indexes)
        self.entities = EntityService(pool, self._indexes)
        preparation = Preparation(
            pool=pool,
            indexes=self._indexes,
            embedders=embedders,
            profile_registry=profiles,
            timeout_s=settings.leg_timeout_s,
        )
        retrievers: dict[Leg, Retriever] = {
            Leg.VECTOR: VectorRetriever(pool, workers),
            Leg.BM25: Bm25Retriever(),
            Leg.GRAPH: GraphRetriever(pool),
        }
        self._intents = IntentPredictor(embedders, self.models, timeout_s=settings.leg_timeout_s)
        self._pipeline = Pipeline(
            pool=pool,
            preparation=preparation,
            legs=ConcurrentLegs(pool, retrievers, timeout_s=settings.leg_timeout_s),
            intents=self._intents,
            rescorer_timeout_s=settings.leg_timeout_s,
        )
        self.jobs = Jobs(pool)
        self.reembedding = Reembedding(pool, embedders, self.jobs)
        self._shadow = Shadow(self._pipeline, profiles, self._journal_writer)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, *, profiles: Mapping[str, Profile] | None = None) -> AsyncIterator[Trivet]:
        """Start or connect to the database, migrate it and load the models; close everything on exit.

        `profiles` adds profiles that only this process knows; they shadow stored ones of the same name.

        Raises StoreError if the database cannot be started, reached or migrated, InvalidInput if the models of the
        default profile cannot be opened, ModelFileError if one of them, or the embedder, is missing or damaged.
        """
        models = models_dir()
        async with AsyncExitStack() as stack:
            postgres = EmbeddedPostgres(settings.data_dir) if settings.uses_embedded else None
            url = await stack.enter_async_context(postgres.running()) if postgres else settings.database_url
            await migrate.migrate(url)
            pool = await stack.enter_async_context(open_pool(url, settings.pool_size))
            threads = processors()
            onnx = OnnxEmbedder(models / MODEL_FILE, models / TOKENIZER_FILE, document_threads=threads)
            cached = partial(
                CachedEmbedder, max_entries=settings.embedding_cache_entries, max_age_s=settings.embedding_cache_age_s
            )
            embedders = Embedders(
                cached(onnx),
                {
                    multilingual.MODEL_NAME: lambda: cached(multilingual_embedder(document_threads=threads)),
                    **({settings.embedder: lambda: cached(remote_embedder(settings))} if settings.sends_texts else {}),
                },
                of_new=settings.embedder,
            )
            stack.push_async_callback(embedders.aclose)
            await onnx.warm_up()
            profile_registry = ProfileRegistry(pool, ModelRegistry(pool, models), own=profiles)
            for profile in SHIPPED.values():
                await profile_registry.ship(profile, _shipped_report(models, profile))
            await profile_registry.models.load((await profile_registry.find(None)).models)
            workers = stack.enter_context(closing(WorkerPool(min(threads, _MOST_THREADS))))
            engine = cls(
                settings=settings,
                url=url,
                pool=pool,
                embedders=embedders,
                workers=workers,
                profiles=profile_registry,
                files=await _index_files(settings, pool),
                postgres=postgres,
            )
            stack.push_async_callback(engine.settle)
            yield engine

    async def list_namespaces(self, names: Collection[str] | None = None) -> list[NamespaceInfo]:
        """All namespaces, or those in `names`, sorted by name."""
        async with self._pool.connection() as conn:
            return await namespaces.describe(conn, names)

    async def put_namespace(self, name: str, settings: NamespaceInput) -> NamespaceInfo:
        """Create a namespace or change its settings; omitted settings keep their values.

        Raises InvalidInput for a bad name, an unknown language or profile, an embedder that this server lacks or an
        invalid rule, Conflict if the language or the embedder of a namespace with memories would change.
        """
        check_new_name(name)
        check_storable(settings)
        if settings.language is not None:
            resolve_language(settings.language)
        if settings.embedder is not None:
            self.embedders.check(settings.embedder)
        if settings.profile is not UNSET:
            await self.profiles.find(settings.profile)
        settings.graph_rules()
        async with self._pool.connection() as conn:
            return await namespaces.put(conn, name, settings, embedder=self.settings.embedder)

    async def get_namespace(self, name: str) -> NamespaceInfo:
        """A namespace with its counts; raises NotFound if it does not exist."""
        check_name(name)
        async with self._pool.connection() as conn:
            described = await namespaces.describe(conn, [name])
        if not described:
            raise NamespaceNotFound(name)
        return described[0]

    async def delete_namespace(self, name: str) -> NamespaceReceipt:
        """Delete a namespace with everything in it; raises NotFound if it does not exist."""
        check_name(name)
        async with self._pool.connection() as conn:
            return await namespaces.delete(conn, name)

    async def add(
        self, namespace: str, batch: Sequence[MemoryInput | InvalidInput], *, may_supersede: bool = False
    ) -> list[AddResult]:
        """Add or replace memories, searchable by all legs on return; invalid ones are rejected one by one.

        With `may_supersede` the results name older memories that the new ones may make outdated. Raises InvalidInput
        for a bad name, and for a batch of more than `MAX_COMPARED` with `may_supersede`.
        """
        check_new_name(namespace)
        if may_supersede and len(batch) > MAX_COMPARED:
            raise InvalidInput(f"takes at most {MAX_COMPARED} memories at once", loc=("may_supersede",))
        results = await self._ingest.add(namespace, batch)
        return await self._outdated.suggest(namespace, results) if may_supersede else results

    async def get(self, namespace: str, memory_id: str) -> Memory:
        """One memory; raises NotFound if there is no such namespace or memory."""
        check_storable(memory_id, ("id",))
        async with namespaces.opened(self._pool, namespace) as (conn, found):
            return (await memories.get(conn, found, memory_id)).memory

    async def list(self, namespace: str, filters: Filters, *, cursor: str | None, limit: int) -> MemoryPage:
        """A page of memories in order of insertion.

        Raises NotFound if there is no such namespace, InvalidInput for a malformed cursor.
        """
        check_storable(filters, ("filters",))
        after = cursor_position(cursor, first=-1, last=2**31 - 1)
        async with namespaces.opened(self._pool, namespace) as (conn, found):
            rows = await memories.page(conn, found.ns, filters, after=after, limit=limit + 1)
        more = len(rows) > limit
        return MemoryPage(
            memories=[row.memory for row in rows[:limit]], next_cursor=str(rows[limit - 1].doc) if more else None
        )

    async def patch(self, namespace: str, memory_id: str, patch: MemoryPatch) -> Memory:
        """Change some fields of a memory.

        Raises NotFound if there is no such namespace or memory, InvalidInput if the changed memory is not a valid one.
        """
        check_storable(memory_id, ("id",))
        return await self._ingest.patch(namespace, memory_id, patch)

    async def prepare_import(self, namespace: str, settings: NamespaceSettings) -> str | None:
        """Apply an export's settings to a namespace without memories, creating it if it does not exist.

        An existing namespace keeps its embedder, so that memories can be moved from one embedder to another. Returns
        the profile that was left out because it does not exist here.
        """
        missing = None
        with suppress(NotFound):
            found = await self.get_namespace(namespace)
            if found.memories:
                return None
            settings = replace(settings, embedder=found.settings.embedder)
        try:
            await self.profiles.find(settings.profile)
        except InvalidInput:
            missing, settings = settings.profile, replace(settings, profile=None)
        await self.put_namespace(namespace, settings)
        return missing

    async def update(
        self, namespace: str, patch: SharedPatch, *, ids: Sequence[str] = (), filters: Filters = NO_FILTERS
    ) -> UpdateReceipt:
        """Change the same fields of many memories in one transaction, selected by ids or filters.

        Raises NotFound if there is no such namespace, InvalidInput unless exactly one of the two is given, for an
        invalid change, or if too many match.
        """
        check_storable(ids, ("ids",))
        check_storable(filters, ("filters",))
        return await self._ingest.update(namespace, patch, ids=ids, filters=filters)

    async def delete(self, namespace: str, memory_id: str) -> None:
        """Delete a memory from every leg; raises NotFound if there is no such namespace or memory."""
        check_storable(memory_id, ("id",))
        await self._ingest.delete(namespace, memory_id)

    async def delete_many(self, namespace: str, *, ids: Sequence[str] = (), filters: Filters = NO_FILTERS) -> int:
        """Delete the memories with these ids, or all that match the filters; returns how many were deleted.

        Raises NotFound if there is no such namespace, InvalidInput unless exactly one of the two is given.
        """
        check_storable(ids, ("ids",))
        check_storable(filters, ("filters",))
        return await self._ingest.delete_many(namespace, ids=ids, filters=filters)

    async def search(self, namespace: str, request: SearchRequest) -> SearchResponse:
        """Ranked memories for a query.

        Raises NotFound if there is no such namespace, InvalidInput for a request that cannot be answered, AllLegsFailed
        if no leg answered.
        """
        answer = await self.answer(namespace, request)
        self._log(answer, answer.memories)
        self._shadow.follow(answer)
        return await search_response(answer)

    def _log(self, answer: Answer, shown: Sequence[RankedMemory]) -> None:
        """Record the search if the namespace keeps a query log."""
        if answer.namespace.settings.query_log is not None:
            self._journal_writer.log_search(answer.namespace, answered_search(answer, shown))

    async def answer(self, namespace: str, request: SearchRequest) -> Answer:
        """The full result behind `search`, with each leg's ranking, for experiments; raises as `search` does."""
        check_name(namespace)
        return await self._pipeline.search(namespace, request, Stopwatch())

    async def candidate_inputs(self, answer: Answer) -> CandidateInputs | None:
        """The rescorer's inputs for the memories that the legs ranked, by id, for training."""
        query, candidates = answer.query.request.query, answer.ordering.candidates
        embedding = await answer.query.embedding()
        vectors = QueryVectors(self._pool, answer.index)
        await vectors.read(candidates.docs)
        inputs = candidate_inputs(answer.index.memories, vectors, query, embedding, candidates)
        if inputs is None:
            return None
        text_vectors = None if inputs.vectors is None else inputs.vectors[inputs.vector_rows]
        return replace(inputs, ids=candidates.ids([*inputs.ids]), vectors=text_vectors, vector_rows=None)

    async def context(self, namespace: str, request: ContextRequest) -> ContextResponse:
        """A context pack for a query or a conversation, empty for an unknown namespace; else raises like `search`."""
        if request.query is None and not any(map(said_in, request.messages)):
            raise InvalidInput("give a query, or messages with content", loc=("query",))
        chars = sum(len(text) for message in request.messages for text in texts_in(message.content))
        search, conversation = await in_thread_if_long(
            chars, lambda: (as_search(request), Conversation(request.messages))
        )
        stopwatch = Stopwatch()
        check_name(namespace)
        try:
            size = PackSize(request.max_tokens, request.top_k)
            answer = await self._pipeline.search(namespace, search, stopwatch, conversation, size)
        except NotFound:  # the assistant's user has said nothing yet
            profile = await self.profiles.find(request.profile)
            return unknown_namespace(request, profile, stopwatch.timings_ms())
        packed = await pack_answer(self._pool, answer, request)
        cited = {item.id for item in packed.items}
        self._log(answer, [found for found in answer.memories if found.memory.id in cited])
        self._shadow.follow(answer)
        return await context_response(answer, packed, request.max_tokens)

    async def classify(self, request: ClassifyRequest) -> ClassifyResponse:
        """The intent and fusion weights that a search of the request's namespace would use for a query.

        Raises NotFound if there is no such namespace, InvalidInput for an unknown profile.
        """
        stopwatch = Stopwatch()
        settings = NamespaceSettings()
        if request.namespace is not None:
            async with namespaces.opened(self._pool, request.namespace) as (_, found):
                settings = found.settings
        profile = await self.profiles.find(request.profile or settings.profile)
        prediction = await self._intents.classify(question_in(request.query), profile, settings.embedder, stopwatch)
        weights = adaptive_weighting(prediction, profile).weights
        return ClassifyResponse(
            intent=intent_to_wire(prediction),
            weights={leg.value: round(weight, 4) for leg, weight in weights.items()},
            profile=profile.label,
            timings_ms=stopwatch.timings_ms(),
        )

    async def shadow(self, name: str) -> ProfileShadow:
        """The shadow version of a profile compared with the live one; raises NotFound for an unknown profile."""
        found = await self.profiles.describe(name)
        compared = None
        if found.shadow is not None and found.live is not None:
            async with self._pool.connection() as conn:
                compared = await shadow.summary(conn, f"{name}@{found.live}", f"{name}@{found.shadow.version}")
        return ProfileShadow(name=name, live=found.live, shadow=found.shadow, compared=compared)

    async def settle(self) -> None:
        """Wait for shadow searches and journal entries; cancel background work and the loading of indexes."""
        await self.reembedding.aclose()
        await self._shadow.aclose()
        await self._journal_writer.aclose()
        await self._indexes.aclose()

    async def readiness(self) -> dict[str, bool]:
        """Whether the database answers in time, its schema is current, and models and namespaces are loaded.

        Models include those of each namespace: without its embedder it can be neither written nor compared.
        """
        reachability = self._pool.reachability
        try:
            await reachability.check()
            async with asyncio.timeout(reachability.limit_s):
                async with self._spare_connection() as conn:
                    migrated = not await migrate.pending(conn)
                    used = await namespaces.embedders(conn) if migrated else {}
        except (StoreUnavailable, TimeoutError):
            return {"database": False, "migrations": False, "models": True, "namespaces": self._indexes.are_warm}
        return {
            "database": True,
            "migrations": migrated,
            "models": not any(embedder_fault(name, self.settings.embedder) for name in used),
            "namespaces": self._indexes.are_warm,
        }

    @asynccontextmanager
    async def _spare_connection(self) -> AsyncIterator[Connection]:
        """A connection outside the pool, whose own may all be in use; one of those if the server allows no more."""
        try:
            spare = await connect(self._url)
        except StoreUnavailable:
            async with self._pool.connection() as conn:
                yield conn
        else:
            with translated():
                async with spare:
                    yield spare

    async def state(self) -> ServerState:
        """What this process holds, and the findings of `trivet doctor` on the models and the database."""
        async with self._pool.connection() as conn:
            findings = await check_database(conn, self.settings.embedder)
            unpacked = await compaction.unpacked(conn)
        models = await asyncio.to_thread(lambda: list(check_models(models_dir())))
        return ServerState(
            findings=[*models, *findings],
            indexes=self._indexes.loaded(),
            max_index_bytes=self.settings.index_bytes,
            unpacked=unpacked,
        )

    async def load(self, namespace: str) -> None:
        """Load a namespace completely, so that no search of it is partial; raises NotFound if it does not exist."""
        check_name(namespace)
        await self._indexes.load(namespace)

    async def warm(self) -> None:
        """Load the largest namespaces, so that no query waits for them."""
        await self._indexes.warm()

    async def maintain(self) -> None:
        """One maintenance pass: index vectors, compact postings, trim logs, refresh the planner's statistics.

        It also writes the outcomes of jobs that ended while the database was away. Raises the first failure after all
        that does not depend on it.
        """
        failures: list[Exception] = []
        async with self._pool.connection() as conn:
            least = self.settings.bm25_tail_docs
            with _collecting(failures):
                await vector_index.enter_some(conn)
            for ns in await compaction.namespaces_to_compact(conn, least=least):
                with _collecting(failures):
                    await compaction.compact(conn, ns, least=least)
            with _collecting(failures):
                await query_log.trim(conn)
            if self._files is not None:
                with _collecting(failures):
                    await self._files.tidy(conn)
            stale = await statistics.stale(conn)
        if stale:
            async with self._spare_connection() as conn:  # the pool's have a statement timeout
                with _collecting(failures):
                    await statistics.refresh(conn, stale)
        await self.jobs.write_outcomes()
        if failures:
            raise failures[0]

    async def trim_changes(self) -> None:
        """Delete changes that no process still needs to follow writes; reads all kept changes."""
        async with self._pool.connection() as conn:
            await changes.trim(conn)


@contextmanager
def _collecting(failures: list[Exception]) -> Iterator[None]:
    """Add a failure of the block to `failures` instead of raising it."""
    try:
        yield
    except Exception as exc:
        failures.append(exc)


def load_models() -> None:
    """Load the embedder and the models of the shipped default profile: processes forked afterwards share their memory.

    Raises InvalidInput and ModelFileError as `Trivet.open` does.
    """
    folder = models_dir()
    load_model(folder / MODEL_FILE, folder / TOKENIZER_FILE)
    for kind, name in asdict(DEFAULT.models).items():
        load_file(kind, folder / name)


async def _index_files(settings: Settings, pool: Pool) -> IndexFiles | None:
    """The index files; None if none are kept, which only makes startup slower."""
    if settings.index_dir is None:
        return None
    try:
        async with pool.connection() as conn:
            return await IndexFiles.open(settings.index_dir, conn)
    except OSError as exc:
        log.warning("indexes cannot be kept in %s: %s", settings.index_dir, exc.strerror)
        return None


def _shipped_report(folder: Path, profile: Profile) -> GateReport | None:
    """The gate report shipped with a profile; None if it is missing or was measured with other parameters."""
    path = folder / f"{profile.name}.gate.json"
    if not path.is_file():
        return None
    try:
        report = msgspec.json.decode(path.read_bytes(), type=GateReport)
    except msgspec.MsgspecError as exc:
        raise ModelFileError(f"the gate report {path} cannot be read ({exc}); {REMEDY}") from exc
    return report if report.candidate_sha256 == profile.fingerprint else None
