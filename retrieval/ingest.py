"""Writing: check -> analyse and embed -> one transaction that changes all three legs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph import store as graph_store
from graph.extraction import extract
from graph.store import DocGraph, GivenEntity, GivenRelation
from retrieval.drafts import Draft, drafts_of, fingerprint, problem_of
from retrieval.embedding.base import Embedder
from retrieval.errors import Collided, Conflict, InvalidInput, NotFound
from retrieval.parsing import check_storable
from retrieval.store import memories, namespaces, postings
from retrieval.store.memories import NewMemory
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.text.analysis import TermBag, bag
from retrieval.types import AddResult, Filters, Memory, MemoryInput, MemoryPatch

TITLE_WEIGHT = 3
"""How often a title's term counts in BM25, against once for the text's."""

_ATTEMPTS = 4

# Another writer added one of the ids, waits for what this one holds, or deleted the namespace.
_MET_ANOTHER_WRITER = (Collided, NotFound)


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysed:
    """A draft with what each leg stores of it."""

    draft: Draft
    bag: TermBag
    graph: DocGraph
    embedding: NDArray[np.float32]


class Ingest:
    """Adds, replaces and deletes memories. Every change is one transaction over all legs."""

    def __init__(self, pool: Pool, embedder: Embedder) -> None:
        self._pool = pool
        self._embedder = embedder

    async def add(self, name: str, batch: Sequence[MemoryInput | InvalidInput]) -> list[AddResult]:
        """Add or replace memories, all that are accepted or none; one result each, in order."""
        results: dict[int, AddResult] = {}
        drafts = drafts_of(batch, results)
        if drafts:
            for _ in range(_ATTEMPTS):
                try:
                    results.update(await self._write(name, drafts))
                    break
                except _MET_ANOTHER_WRITER:
                    continue
            else:
                raise Conflict("other writers kept changing the same memories")
        return [results[at] for at in range(len(batch))]

    async def patch(self, name: str, memory_id: str, patch: MemoryPatch) -> Memory:
        """Change some fields of a memory; all legs follow.

        Raises:
            NotFound: no such namespace or memory.
            InvalidInput: the changed memory is not a valid one.
        """
        check_storable(patch)
        changes = {name: value for name, value in msgspec.structs.asdict(patch).items() if value is not msgspec.UNSET}
        for _ in range(_ATTEMPTS):
            async with self._pool.connection() as conn:
                namespace = await namespaces.find(conn, name)
                stored = await memories.get(conn, namespace, memory_id)
            current = stored.memory
            unchanged = {field: getattr(current, field) for field in MemoryInput.__struct_fields__}
            changed = msgspec.structs.replace(MemoryInput(**unchanged), **changes)
            if problem := problem_of(changed):
                raise problem
            draft = Draft(at=0, id=memory_id, input=changed, fingerprint=fingerprint(changed))
            try:
                await self._write(name, [draft], expected={memory_id: stored.fingerprint})
            except (*_MET_ANOTHER_WRITER, Conflict):
                continue
            async with self._pool.connection() as conn:
                return (await memories.get(conn, namespace, memory_id)).memory
        raise Conflict("other writers kept changing the same memory")

    async def delete(self, name: str, memory_id: str) -> None:
        """Delete one memory and all traces of it.

        Raises:
            NotFound: no such namespace or memory.
        """
        async with self._pool.connection() as conn, conn.transaction():
            namespace = await namespaces.find(conn, name)
            locked = await memories.lock(conn, namespace.ns, [memory_id])
            if memory_id not in locked:
                raise NotFound(f"there is no memory {memory_id!r} in namespace {name!r}")
            await _remove(conn, namespace.ns, [locked[memory_id][0]])

    async def delete_matching(self, name: str, filters: Filters) -> int:
        """Delete all memories that meet the filters; how many.

        Raises:
            NotFound: no such namespace.
            InvalidInput: filters that every memory meets.
        """
        if filters.is_empty:
            raise InvalidInput("must not be empty; delete the namespace to delete all", loc=("filters",))
        async with self._pool.connection() as conn, conn.transaction():
            namespace = await namespaces.find(conn, name)
            docs = await memories.lock_matching(conn, namespace.ns, filters)
            await _remove(conn, namespace.ns, docs)
            return len(docs)

    async def _write(
        self, name: str, drafts: Sequence[Draft], *, expected: Mapping[str, bytes] | None = None
    ) -> dict[int, AddResult]:
        async with self._pool.connection() as conn:
            namespace = await namespaces.find_or_create(conn, name)
            known = await memories.fingerprints(conn, namespace.ns, [draft.id for draft in drafts])
        unchanged = [draft for draft in drafts if known.get(draft.id) == draft.fingerprint]
        changed = [draft for draft in drafts if known.get(draft.id) != draft.fingerprint]
        results = {draft.at: AddResult(id=draft.id, status="unchanged") for draft in unchanged}
        if changed:
            analysed = await self._analyse(changed, namespace.settings.language)
            async with self._pool.connection() as conn:
                replaced = await _store(conn, namespace, analysed, expected or {})
            for draft in changed:
                results[draft.at] = AddResult(id=draft.id, status="updated" if draft.id in replaced else "created")
        return results

    async def _analyse(self, drafts: Sequence[Draft], language: str) -> list[Analysed]:
        texts = [_embedded_text(draft.input) for draft in drafts]
        analysis = asyncio.to_thread(lambda: [_bag_and_graph(draft.input, language) for draft in drafts])
        embeddings, analyses = await asyncio.gather(self._embedder.embed_documents(texts), analysis)
        return [
            Analysed(draft=draft, bag=terms, graph=graph, embedding=embedding)
            for draft, (terms, graph), embedding in zip(drafts, analyses, embeddings, strict=True)
        ]


def _embedded_text(memory: MemoryInput) -> str:
    return f"{memory.title}\n{memory.text}" if memory.title else memory.text


def _bag_and_graph(memory: MemoryInput, language: str) -> tuple[TermBag, DocGraph]:
    return (
        bag(memory.text, memory.title, language, title_weight=TITLE_WEIGHT),
        DocGraph(
            doc=0,
            mentions=tuple(extract(memory.text, title=memory.title, speaker=memory.speaker)),
            entities=tuple(GivenEntity(item.name, item.type, tuple(item.aliases)) for item in memory.entities),
            relations=tuple(GivenRelation(item.source, item.type, item.target) for item in memory.relations),
        ),
    )


async def _store(
    conn: AsyncConnection[Any], namespace: Namespace, analysed: Sequence[Analysed], expected: Mapping[str, bytes]
) -> frozenset[str]:
    """Write analysed memories in one transaction; the ids that were there before.

    Raises:
        NotFound: the namespace was deleted meanwhile.
        Conflict: a memory is no longer as expected.
        UniqueViolation: another writer added one of the ids at the same time.
    """
    ns = namespace.ns
    docs = await namespaces.give_out_docs(conn, ns, len(analysed))
    numbered = dict(zip(docs or (), sorted(analysed, key=lambda item: item.draft.id), strict=True)) if docs else {}
    async with conn.transaction():
        if not numbered or not await namespaces.hold(conn, ns):
            raise NotFound(f"namespace {namespace.name!r} was deleted")
        existing = await memories.lock(conn, ns, [item.draft.id for item in analysed])
        if any(existing.get(memory_id, (0, b""))[1] != fingerprint for memory_id, fingerprint in expected.items()):
            raise Conflict("the memory was changed meanwhile")
        superseded = await _remove_rows(conn, ns, [doc for doc, _ in existing.values()])
        now = datetime.now(UTC)
        await memories.insert(conn, ns, [_new_memory(doc, item, now) for doc, item in numbered.items()])
        await postings.append(conn, ns, {doc: item.bag for doc, item in numbered.items()})
        await graph_store.write(conn, ns, [_with_doc(item.graph, doc) for doc, item in numbered.items()])
        written = {item.draft.id for item in analysed}
        newly_superseded = {item.draft.input.supersedes for item in analysed if item.draft.input.supersedes}
        await memories.refresh_supersession(conn, ns, sorted({*superseded, *written, *newly_superseded}))
    return frozenset(existing)


def _new_memory(doc: int, item: Analysed, now: datetime) -> NewMemory:
    return NewMemory(
        doc=doc,
        id=item.draft.id,
        input=item.draft.input,
        created_at=item.draft.input.created_at or now,
        fingerprint=item.draft.fingerprint,
        length=item.bag.length,
        embedding=item.embedding,
    )


def _with_doc(graph: DocGraph, doc: int) -> DocGraph:
    return DocGraph(doc=doc, mentions=graph.mentions, entities=graph.entities, relations=graph.relations)


async def _remove(conn: AsyncConnection[Any], ns: int, docs: Sequence[int]) -> None:
    """Delete memories from all legs and bring back what they superseded."""
    await memories.refresh_supersession(conn, ns, await _remove_rows(conn, ns, docs))


async def _remove_rows(conn: AsyncConnection[Any], ns: int, docs: Sequence[int]) -> Sequence[str]:
    """Delete memories from all legs; the ids that they superseded."""
    if not docs:
        return ()
    lengths, superseded = await memories.delete(conn, ns, docs)
    await postings.remove(conn, ns, lengths)
    await graph_store.remove(conn, ns, sorted(lengths))
    return superseded
