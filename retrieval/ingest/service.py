"""Writes memories: check, analyse and embed, then one transaction that changes all three legs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace
from numpy.typing import NDArray

from postgres.arrays import array_text
from postgres.connection import Connection
from postgres.prepared import Parameters
from retrieval.embedding.embedders import Embedders
from retrieval.errors import CircularSupersession, Collided, InvalidInput, NotFound
from retrieval.ingest import transaction
from retrieval.ingest.analysis import Analyser, embedded_text
from retrieval.ingest.checks import Draft, canonical, check_meaning, drafts_of, fingerprint
from retrieval.ingest.group_commit import GroupCommit, WriteBatch
from retrieval.ingest.ordering import KeyedFifo
from retrieval.ingest.transaction import WriteResult
from retrieval.store import documents, locking, memories, namespaces, turns, vectors
from retrieval.store.locking import MemoryVersion
from retrieval.store.memories import StoredMemory
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.store.sessions import session_name, session_of
from retrieval.store.visibility import Condition, by_id, matching
from retrieval.tasks import retried
from retrieval.types.document import DocumentStatus
from retrieval.types.memory import (
    MOST_UPDATED,
    AddResult,
    Memory,
    MemoryInput,
    MemoryPatch,
    SharedPatch,
    UpdateReceipt,
    superseded_ids,
)
from retrieval.types.search import NO_FILTERS, Filters
from retrieval.validation import check_names, check_storable

_OF_SESSIONS = frozenset({"session_id", "kind", "document_id"})
"""Fields that make a memory a turn of a session."""


_CHECKED_AT_ONCE = 8
"""Larger batches are checked in a thread: each memory may have 64 KB of metadata, which would block the event loop."""

# Another writer added one of the ids, deadlocked with this one, or deleted the namespace.
_MET_ANOTHER_WRITER = (Collided, NotFound)


class Ingest:
    """Adds, replaces and deletes memories. Every change is one transaction over all legs."""

    def __init__(self, pool: Pool, embedders: Embedders, *, announce: Callable[[str], None] = lambda _: None) -> None:
        """Write through `pool`; `announce` is called with the name of a namespace after each change to it."""
        self._pool = pool
        self._analyser = Analyser(embedders)
        self._embedder_of_new = embedders.of_new
        self._announce = announce
        self._writes = GroupCommit(pool)
        self._order = KeyedFifo()

    async def add(self, name: str, batch: Sequence[MemoryInput | InvalidInput]) -> list[AddResult]:
        """Add or replace memories; writes all accepted ones or none. Returns one result per memory, in order.

        Calls of one process that share an id or a session are written in order of arrival, however many are analysed
        concurrently.
        """
        results: dict[int, AddResult] = {}
        with self._order.enter(_keys(name, batch)) as wait_for_earlier:
            if len(batch) <= _CHECKED_AT_ONCE:
                drafts = drafts_of(batch, results)
            else:
                drafts = await asyncio.to_thread(drafts_of, batch, results)
            while drafts:
                try:
                    results |= await retried(partial(self._write, name, drafts, wait_for_earlier), _MET_ANOTHER_WRITER)
                    break
                except CircularSupersession as exc:
                    results |= {
                        draft.position: AddResult(
                            id=draft.id, status="rejected", error=f"supersedes: {exc.chains[draft.id]}"
                        )
                        for draft in drafts
                        if draft.id in exc.chains
                    }
                    drafts = [draft for draft in drafts if draft.id not in exc.chains]
        return [results[position] for position in range(len(batch))]

    async def patch(self, name: str, memory_id: str, patch: MemoryPatch) -> Memory:
        """Change some fields of a memory, in all legs.

        Raises NotFound if there is no such namespace or memory, InvalidInput if the changed memory is invalid.
        """
        changes = _changes_of(patch)
        superseded = superseded_ids(changes.get("supersedes"))

        async def attempt() -> Memory:
            async with namespaces.opened(self._pool, name) as (conn, namespace):
                stored = await memories.get(conn, namespace, memory_id)
                known = await locking.versions(conn, namespace.ns, by_id(superseded))
            for missing in superseded:
                if missing not in known:
                    raise InvalidInput(f"there is no memory {missing!r}", loc=("supersedes",))
            await self._rewrite(namespace, [stored], changes)
            async with self._pool.connection() as conn:
                return (await memories.get(conn, namespace, memory_id)).memory

        with self._order.enter([(name, "id", memory_id)]) as wait_for_earlier:
            await wait_for_earlier()
            return await retried(attempt, (Collided,))

    async def update(
        self, name: str, patch: SharedPatch, *, ids: Sequence[str] = (), filters: Filters = NO_FILTERS
    ) -> UpdateReceipt:
        """Change the same fields of many memories in one transaction, selected by ids or filters.

        Ids that do not exist are ignored. Raises NotFound if there is no such namespace; InvalidInput unless exactly
        one of ids and filters is given, if more than `MOST_UPDATED` match, or if a changed memory is invalid.
        """
        changes = _changes_of(patch)
        _check_either(ids, filters)

        async def attempt() -> UpdateReceipt:
            async with namespaces.opened(self._pool, name) as (conn, namespace):
                if ids:
                    stored = await memories.read(conn, namespace.ns, by_id(ids))
                else:
                    stored = await memories.page(conn, namespace.ns, filters, after=-1, limit=MOST_UPDATED + 1)
                if _OF_SESSIONS & changes.keys():
                    stored = await _as_said(conn, namespace.ns, stored)
            if len(stored) > MOST_UPDATED:
                raise InvalidInput(f"more than {MOST_UPDATED:,} memories match", loc=("filters",))
            results = await self._rewrite(namespace, stored, changes)
            updated = sum(result.status == "updated" for result in results.values())
            return UpdateReceipt(matched=len(stored), updated=updated)

        return await retried(attempt, (Collided,))

    async def delete(self, name: str, memory_id: str) -> None:
        """Delete one memory from all legs; raises NotFound if there is no such namespace or memory."""
        if not await self._deleted(name, by_id([memory_id])):
            raise NotFound(f"there is no memory {memory_id!r} in namespace {name!r}")

    async def delete_many(self, name: str, *, ids: Sequence[str] = (), filters: Filters = NO_FILTERS) -> int:
        """Delete memories selected by ids or filters in one transaction; returns how many were deleted.

        Raises NotFound if there is no such namespace, InvalidInput unless exactly one of ids and filters is given.
        """
        if not ids and filters.is_empty:
            raise InvalidInput("must not be empty; delete the namespace to delete all", loc=("filters",))
        _check_either(ids, filters)
        return await self._deleted(name, by_id(ids) if ids else matching(filters))

    async def _deleted(self, name: str, condition: Condition | None) -> int:
        """Delete some memories; returns how many were deleted."""

        async def attempt() -> int:
            async with self._pool.connection() as conn:
                return await transaction.delete(conn, name, condition)

        if deleted := await retried(attempt, (Collided,)):
            self._announce(name)
        return deleted

    async def replace_document(self, name: str, document_id: str, chunks: Sequence[MemoryInput]) -> DocumentStatus:
        """Replace a document's chunks with these, in order; a search sees all of them or none.

        Raises InvalidInput if one is invalid, Conflict if another memory has the id of one.
        """
        rejected: dict[int, AddResult] = {}
        sent = await asyncio.to_thread(drafts_of, chunks, rejected)
        for result in rejected.values():
            raise InvalidInput(result.error)

        async def attempt() -> DocumentStatus:
            async with self._pool.connection() as conn:
                namespace = await namespaces.find_or_new(conn, name, embedder=self._embedder_of_new)
                known = await locking.versions(conn, namespace.ns, documents.chunks_of(document_id))
            # Without its place, a chunk whose position was cleared differs from the one sent, and gets it back.
            unplaced = {version.id: version._replace(place=None) for version in known.values()}
            drafts = [draft.as_stored(unplaced.get(draft.id)) for draft in sent]
            kept = {draft.id: draft.fingerprint for draft in drafts if draft.is_among(known)}
            if len(kept) == len(drafts) == len(known):
                if await wait_for_earlier():
                    async with self._pool.connection() as conn:
                        if await locking.versions(conn, namespace.ns, documents.chunks_of(document_id)) != known:
                            raise Collided("a call before this one changed the document")
                return "unchanged"
            changed = [draft for draft in drafts if draft.id not in kept]
            async with self._pool.connection() as conn:  # chunks after an insertion have new ids but the same texts
                stored = await memories.read(conn, namespace.ns, by_id(known))
            embeddings = await self._embeddings_of(namespace, changed, stored)
            analysed = await self._analyser.analyse(changed, namespace.settings, embeddings)
            await wait_for_earlier()
            created = await self._created(namespace)
            async with self._pool.connection() as conn:
                status = await transaction.replace_document(
                    conn, created, document_id, analysed, before=known.values(), kept=kept
                )
            self._announce(name)
            return status

        with self._order.enter([(name, "session", session_name(document_id))]) as wait_for_earlier:
            return await retried(attempt, _MET_ANOTHER_WRITER)

    async def delete_document(self, name: str, document_id: str) -> None:
        """Delete a document with its chunks; raises NotFound if there is no such namespace or document."""

        async def attempt() -> None:
            async with namespaces.opened(self._pool, name) as (conn, namespace):
                known = await locking.versions(conn, namespace.ns, documents.chunks_of(document_id))
                if not known:
                    raise NotFound(f"there is no document {document_id!r} in namespace {name!r}")
                await transaction.replace_document(conn, namespace, document_id, (), before=known.values(), kept={})

        await retried(attempt, (Collided,))
        self._announce(name)

    async def _write(
        self,
        name: str,
        drafts: Sequence[Draft],
        wait_for_earlier: Callable[[], Awaitable[bool]],
    ) -> dict[int, AddResult]:
        async with self._pool.connection() as conn:
            namespace = await namespaces.find_or_new(conn, name, embedder=self._embedder_of_new)
            given = [draft.input.id for draft in drafts if draft.input.id is not None]
            known = await locking.versions(conn, namespace.ns, by_id(given))
            drafts = [draft.as_stored(known.get(draft.id)) for draft in drafts]
            changed = [draft.id for draft in drafts if draft.id in known and not draft.is_among(known)]
            stored = await memories.read(conn, namespace.ns, by_id(changed))
        return await self._write_changed(namespace, drafts, known, stored, wait_for_earlier)

    async def _rewrite(
        self, namespace: Namespace, stored: Sequence[StoredMemory], changes: Mapping[str, Any]
    ) -> dict[int, AddResult]:
        """Write stored memories with some fields changed.

        Raises InvalidInput if a changed memory is invalid, Collided if one has changed since it was read.
        """
        drafts = [_changed(each, changes, position) for position, each in enumerate(stored)]
        known = {
            memory.id: MemoryVersion(
                memory.id, doc, mark, memory.created_at, session_of(old := _input_of(memory)), old.superseded_ids
            )
            for memory, mark, doc in stored
        }
        return await self._write_changed(namespace, drafts, known, stored)

    async def _created(self, namespace: Namespace) -> Namespace:
        """The namespace; a new one is created only now, so that nothing is left of it if it cannot be embedded for."""
        if namespace.ns:
            return namespace
        async with self._pool.connection() as conn:
            return await namespaces.create(conn, namespace)

    async def _embeddings_of(
        self, namespace: Namespace, drafts: Sequence[Draft], stored: Sequence[StoredMemory]
    ) -> Mapping[str, NDArray[np.float32]]:
        """By id, the stored embeddings of drafts whose text is among the `stored` ones."""
        docs = {embedded_text(_input_of(each.memory)): each.doc for each in stored}
        texts = {draft.id: embedded_text(draft.input) for draft in drafts}
        same = {memory_id: docs[text] for memory_id, text in texts.items() if text in docs}
        if not same:
            return {}
        async with self._pool.connection() as conn:
            return await vectors.read_text_vectors(conn, namespace.ns, same, generation=namespace.generation)

    async def _write_changed(
        self,
        namespace: Namespace,
        drafts: Sequence[Draft],
        known: Mapping[str, MemoryVersion],
        stored: Sequence[StoredMemory],
        wait_for_earlier: Callable[[], Awaitable[bool]] | None = None,
    ) -> dict[int, AddResult]:
        """Write the drafts that differ from the `known` versions; one whose text is `stored` keeps its embedding.

        Without `wait_for_earlier`, drafts are based on these versions. Raises Collided if one has changed since.
        """
        unchanged = [draft for draft in drafts if draft.is_among(known)]
        changed = [draft for draft in drafts if not draft.is_among(known)]
        results = {draft.position: AddResult(id=draft.id, status="unchanged") for draft in unchanged}
        if changed:
            embeddings = await self._embeddings_of(namespace, changed, stored)
            analysed = await self._analyser.analyse(changed, namespace.settings, embeddings)
            before = [known[draft.id] for draft in changed if draft.id in known]
            expected = {} if wait_for_earlier else {version.id: version.fingerprint for version in before}
            batch = WriteBatch(analysed=analysed, before=before, expected=expected)
        if wait_for_earlier and await wait_for_earlier() and unchanged:
            async with self._pool.connection() as conn:
                now = await locking.versions(conn, namespace.ns, by_id([draft.id for draft in unchanged]))
            if not all(draft.is_among(now) for draft in unchanged):
                raise Collided("a call before this one changed the same memory")
        if changed:
            written = await self._writes.store(await self._created(namespace), batch)
            self._announce(namespace.name)
            results |= {draft.position: _stored(draft, written) for draft in changed}
        return results


def _changes_of(patch: SharedPatch) -> Mapping[str, Any]:
    """The fields that a patch changes; raises InvalidInput for values that cannot be stored."""
    check_storable(patch)
    changes = patch.changes
    check_names(**{name: changes.get(name) for name in ("session_id", "document_id")})
    return changes


def _changed(stored: StoredMemory, changes: Mapping[str, Any], position: int) -> Draft:
    """A stored memory with some fields changed; raises InvalidInput if the result is invalid.

    An unchanged one keeps its fingerprint, which may cover less than is stored: callers omit times.
    """
    before = _input_of(stored.memory)
    changed = canonical(replace(before, **changes))
    check_meaning(changed)
    mark = stored.fingerprint if changed == canonical(before) else fingerprint(changed)
    return Draft(position=position, id=stored.memory.id, input=changed, fingerprint=mark)


def _input_of(stored: Memory) -> MemoryInput:
    """A stored memory as a caller would send it."""
    return MemoryInput(**{name: getattr(stored, name) for name in MemoryInput.__struct_fields__})


async def _as_said(conn: Connection, ns: int, stored: Sequence[StoredMemory]) -> Sequence[StoredMemory]:
    """Memories in session order, in which they join another session: ordinals change when memories are rewritten."""
    placed: Parameters = {"ns": ns, "docs": array_text([each.doc for each in stored])}
    places = dict(await turns.PLACES.rows(conn, placed))
    return sorted(stored, key=lambda each: (each.memory.session_id or "", places.get(each.doc, 0), each.doc))


def _check_either(ids: Sequence[str], filters: Filters) -> None:
    if bool(ids) != filters.is_empty:
        raise InvalidInput("give either ids or filters", loc=("ids",))


def _stored(draft: Draft, written: WriteResult) -> AddResult:
    """The result for a written memory. A superseded memory may arrive later, so a missing one is only a warning."""
    if draft.id in written.unchanged:
        return AddResult(id=draft.id, status="unchanged")
    unknown = [repr(old) for old in draft.input.superseded_ids if old not in written.known]
    return AddResult(
        id=draft.id,
        status="updated" if draft.id in written.replaced else "created",
        warning=f"supersedes: there is no memory {', '.join(unknown)} so far" if unknown else UNSET,
    )


def _keys(name: str, batch: Sequence[MemoryInput | InvalidInput]) -> frozenset[tuple[str, str, str]]:
    """The ids and sessions that a batch touches, including superseded ids."""
    given = [memory for memory in batch if isinstance(memory, MemoryInput)]
    ids = {memory.id for memory in given}.union(*(memory.superseded_ids for memory in given))
    sessions = set(map(session_of, given))
    return frozenset((name, kind, one) for kind, some in (("id", ids), ("session", sessions)) for one in some if one)
