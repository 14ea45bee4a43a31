"""One transaction over all legs: adds, replaces and deletes memories.

Locks are taken in this order, within each kind by ascending key: the namespace's row, the sessions and the ids that are
written or superseded (see `store/locking.py`), the `memory` rows of the batch and of those it supersedes, the
supersession chains, the rows of neighbouring turns (see `store/turns.py`), entities. This prevents deadlocks: a
transaction only waits for locks later in the order than those it holds. Sessions and ids are locked as they were read
beforehand; a memory found to be in another session, or to supersede another id, was changed concurrently, and the
writer starts over. After the `memory` rows, a writer that takes an alias away locks the texts that used it; and two
writers may each supersede a turn next to which the other writes. These can deadlock; the database then aborts one of
the two, which starts over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from graph import store as graph_store
from graph.graph_rows import DocGraph
from postgres.connection import Connection
from retrieval.errors import CircularSupersession, Collided, Conflict
from retrieval.ingest.graphs import TextsByAlias
from retrieval.store import changes, documents, locking, memories, namespaces, sessions, turns
from retrieval.store.bm25 import postings
from retrieval.store.locking import MemoryVersion
from retrieval.store.memories import NewMemory
from retrieval.store.namespaces import ALLOW_LONG_STATEMENTS, Namespace
from retrieval.store.sessions import Arrangement, Place, Turn, arrange, assign_places, destination, session_of
from retrieval.store.visibility import Condition, by_id
from retrieval.types.document import DocumentStatus
from retrieval.types.memory import MAX_BATCH

_SHOWN = 4
"""Ids shown of each end of a chain of supersessions, which may be as long as the namespace."""


class WriteResult(NamedTuple):
    """The result of a transaction.

    Attributes:
        replaced: ids that existed before.
        unchanged: ids that a concurrent call had already stored with the same content; they are not written.
        known: written or superseded ids that now exist.
    """

    replaced: frozenset[str]
    unchanged: frozenset[str]
    known: frozenset[str]


async def store(
    conn: Connection,
    namespace: Namespace,
    analysed: Sequence[NewMemory],
    *,
    before: Collection[MemoryVersion],
    expected: Mapping[str, bytes],
) -> WriteResult:
    """Write analysed memories in one transaction; `before` has the stored versions of those that existed.

    The ids are unique, and turns of a session in order. `expected` are fingerprints that stored memories must still
    have.

    Raises:
        NotFound: the namespace was deleted in the meantime.
        Collided: a memory lacks the expected fingerprint, or was changed concurrently, so that not everything needed is
            locked.
        CircularSupersession: some would supersede themselves through others; nothing is written.
        UniqueViolation: another writer added one of the ids at the same time.
    """
    ns = namespace.ns
    docs = await namespaces.allocate_docs(conn, namespace, len(analysed))
    written, locks = {item.id: item for item in analysed}, _Locks.for_change(analysed, before)
    numbered = dict(zip(written, docs, strict=True))
    async with conn.transaction():
        await namespaces.lock_for_write(conn, namespace)
        if len(analysed) > MAX_BATCH:
            await conn.execute(ALLOW_LONG_STATEMENTS)
        known = {memory_id for memory_id, item in written.items() if item.may_exist}
        await locks.take(conn, ns, written=known)
        locked = await locking.lock(conn, ns, by_id(known | locks.superseded))
        existing = [row for row in locked if row.id in written]
        stored = {row.id: row.fingerprint for row in existing}
        if any(stored.get(memory_id) != fingerprint for memory_id, fingerprint in expected.items()):
            raise Collided("the memory was changed meanwhile")
        unchanged = {item.id for item in analysed if stored.get(item.id) == item.fingerprint}
        removed = [row for row in existing if row.id not in unchanged]
        added = [item for item in analysed if item.id not in unchanged]
        locks.check(removed)
        await _check_chains(conn, ns, removed, added)
        await _exchange(conn, ns, removed, {numbered[item.id]: item for item in added})
    return WriteResult(
        replaced=frozenset(stored),
        unchanged=frozenset(unchanged),
        known=frozenset({row.id for row in locked} | written.keys()),
    )


async def replace_document(
    conn: Connection,
    namespace: Namespace,
    document_id: str,
    analysed: Sequence[NewMemory],
    *,
    before: Collection[MemoryVersion],
    kept: Mapping[str, bytes],
) -> DocumentStatus:
    """Replace a document's chunks with the analysed ones and those `kept`; "unchanged" if a concurrent call did so.

    The analysed chunks are in the document's order; `kept` has the fingerprints of chunks that stay from `before`.

    Raises:
        NotFound: the namespace was deleted in the meantime.
        Conflict: a memory that is not a chunk of this document has the id of one.
        Collided: the document was changed concurrently.
        UniqueViolation: another writer added one of the ids at the same time.
    """
    ns = namespace.ns
    docs = await namespaces.allocate_docs(conn, namespace, len(analysed))
    written, locks = [item.id for item in analysed], _Locks.for_change(analysed, before)
    locks.sessions.add(sessions.session_name(document_id))
    async with conn.transaction():
        await namespaces.lock_for_write(conn, namespace)
        await conn.execute(ALLOW_LONG_STATEMENTS)
        await locks.take(conn, ns, written=written)
        locked = await locking.lock(conn, ns, documents.chunks_of(document_id))
        stored = {row.id: row.fingerprint for row in locked}
        if stored == {**kept, **{item.id: item.fingerprint for item in analysed}}:
            return "unchanged"
        if foreign := await locking.lock(conn, ns, by_id({*written} - stored.keys())):
            raise Conflict(f"there is a memory {foreign[0].id!r} that is no chunk of document {document_id!r}")
        if any(stored.get(memory_id) != fingerprint for memory_id, fingerprint in kept.items()):
            raise Collided("the document was changed meanwhile")
        locks.check(locked)
        removed = [row for row in locked if row.id not in kept]
        await _exchange(conn, ns, removed, dict(zip(docs, analysed, strict=True)))
    return "updated" if stored else "created"


async def delete(conn: Connection, name: str, condition: Condition | None) -> int:
    """Delete some memories from all legs; returns how many were deleted.

    Raises NotFound if there is no such namespace, Collided if one was changed concurrently, so that not everything
    needed is locked.
    """
    async with conn.transaction():
        await conn.execute(ALLOW_LONG_STATEMENTS)
        ns = (await namespaces.find(conn, name)).ns
        await namespaces.lock(conn, ns)
        known = await locking.versions(conn, ns, condition)
        locks = _Locks.for_change((), known.values())
        await locks.take(conn, ns, written=())
        await locking.lock(conn, ns, by_id(known.keys() | locks.superseded))
        now = await locking.versions(conn, ns, condition)  # a changed memory may no longer match
        removed = [version for version in now.values() if version.id in known]
        locks.check(removed)
        await _exchange(conn, ns, removed, {})
        return len(removed)


class _Locks(NamedTuple):
    """The sessions that a transaction changes, and the ids that its memories supersede, or superseded before."""

    sessions: set[str | None]
    superseded: set[str]

    @classmethod
    def for_change(cls, analysed: Iterable[NewMemory], before: Iterable[MemoryVersion]) -> _Locks:
        """The locks for memories as they are written, and as they were before."""
        now = [item.input for item in analysed]
        return cls(
            {None, *map(session_of, now), *(old.session_id for old in before)},
            {*chain(*(each.superseded_ids for each in now), *(old.superseded_ids for old in before))},
        )

    async def take(self, conn: Connection, ns: int, *, written: Collection[str]) -> None:
        """Lock sessions and ids."""
        sessions = [session for session in self.sessions if session is not None]
        await locking.lock_names(conn, ns, sessions=sessions, written=written, superseded=self.superseded)

    def check(self, rows: Sequence[MemoryVersion]) -> None:
        """Raise if a memory's session or superseded id is not locked."""
        if not {row.session_id for row in rows} <= self.sessions:
            raise Collided("a memory was moved to another session meanwhile")
        if not {old for row in rows for old in row.superseded_ids} <= self.superseded:
            raise Collided("a memory has come to supersede another one meanwhile")


async def _check_chains(
    conn: Connection, ns: int, existing: Sequence[MemoryVersion], analysed: Sequence[NewMemory]
) -> None:
    """Reject memories that would newly supersede themselves through others; existing cycles stay."""
    before = {row.id: row.superseded_ids for row in existing}
    wanted = {item.id: item.input.superseded_ids for item in analysed}
    new = {memory_id: [old for old in ids if old not in before.get(memory_id, ())] for memory_id, ids in wanted.items()}
    known = [item.id for item in analysed if new[item.id] and item.may_exist]
    if not known:
        return
    stored = await locking.chains(conn, ns, known, {old for ids in wanted.values() for old in ids})
    edges = {memory_id: [*ids] for memory_id, ids in stored.items() if memory_id not in wanted}
    edges |= {memory_id: [old for old in ids if old not in new[memory_id]] for memory_id, ids in wanted.items()}
    # In a thread, as it may take seconds: for a batch in which each memory supersedes 64 others.
    if closing := await asyncio.to_thread(_closing, new, edges):
        raise CircularSupersession(closing)


def _closing(new: Mapping[str, Sequence[str]], edges: dict[str, list[str]]) -> dict[str, str]:
    """The memories whose new ids close a chain, with that chain in words; adds those of the others to `edges`."""
    closing: dict[str, str] = {}
    superseded = {old for ids in edges.values() for old in ids}
    for memory_id, ids in new.items():
        if memory_id in superseded and (chain := _chain(ids, memory_id, edges)):
            chain[_SHOWN:-_SHOWN] = ["…"] * (len(chain) > 2 * _SHOWN)
            closing[memory_id] = f"it would supersede itself: {' > '.join([memory_id, *chain])}"
        else:
            edges[memory_id] += ids
            superseded.update(ids)
    return closing


def _chain(starts: Sequence[str], end: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    """Ids from one of `starts` to `end`, each superseding the next; empty if there is no such chain."""
    reached_from: dict[str, str | None] = dict.fromkeys(starts)
    waiting = [*reversed(starts)]
    while waiting:
        current = waiting.pop()
        if current == end:
            chain = [current]
            while (before := reached_from[chain[-1]]) is not None:
                chain.append(before)
            return chain[::-1]
        for old in edges.get(current, ()):
            if old not in reached_from:
                reached_from[old] = current
                waiting.append(old)
    return []


async def _exchange(
    conn: Connection, ns: int, removed: Sequence[MemoryVersion], added: Mapping[int, NewMemory]
) -> None:
    """Remove locked memories from all legs and add others, keyed by new ordinals.

    `added` is in the order in which turns are appended to a session. Rows are written by id, so that two writers of
    the same new ids collide in the same order.
    """
    gone = [row.doc for row in removed]
    arranged = await _arranged(conn, ns, removed, added)
    withdrawn = await memories.delete(conn, ns, gone) if gone else set[str]()
    superseded = {old for row in removed for old in row.superseded_ids}
    vectors = arranged.vectors
    in_context = {doc: replace(item, embedding=vectors.get(doc, item.embedding)) for doc, item in added.items()}
    remixed = {doc: vector for doc, vector in vectors.items() if doc not in added}
    # One wait for all. Only statements without results may be in it: within a pipeline the database does not consider a
    # transaction idle, and would keep its locks forever if this process were suspended.
    async with conn.pipeline():
        turns_gone = [row.doc for row in removed if row.place is not None]
        await turns.change(conn, ns, gone=turns_gone, added=arranged.added, relinked=arranged.relinked)
        await memories.set_embeddings(conn, ns, remixed)
        if added:
            await postings.append(conn, ns, {doc: item.bag for doc, item in added.items()})
            # Last, as it may fail if another writer has added an id, and statements after an error are not run.
            await memories.insert(conn, ns, dict(sorted(in_context.items(), key=lambda row: row[1].id)))
    await postings.remove(conn, ns, gone)
    written = {item.id for item in added.values() if item.may_exist}
    newly_superseded = {old for item in added.values() for old in item.input.superseded_ids}
    outdated = await memories.refresh_supersession(conn, ns, sorted({*superseded, *written, *newly_superseded}))
    graphs = [replace(item.graph, doc=doc) for doc, item in added.items()]
    remade = await _mentioning_by_alias(conn, ns, gone, graphs) if withdrawn else []
    again = [graph.doc for graph in remade]
    described = await graph_store.write(conn, ns, [*graphs, *remade], removed=[*gone, *again], withdrawn=withdrawn)
    relinked = [turn.doc for turn in arranged.relinked]
    mentioning = [changes.ENTITIES, *again] if again else ()
    await changes.record(conn, ns, {*gone, *added, *relinked, *remixed, *outdated, *mentioning}, described=described)


async def _mentioning_by_alias(
    conn: Connection, ns: int, gone: Collection[int], added: Sequence[DocGraph]
) -> list[DocGraph]:
    """The graphs of memories that use an alias which no remaining memory gives."""
    taken = await graph_store.aliases_of(conn, ns, gone, but=added)
    if not taken:
        return []
    keys = {alias.key for alias in taken}
    texts = TextsByAlias(conn, ns, keys)
    await texts.read(await graph_store.not_given(conn, ns, taken, but=gone))  # before other writers have to wait
    await graph_store.take_aliases(conn, ns, keys)
    return await texts.graphs(await graph_store.not_given(conn, ns, taken, but=gone))


async def _arranged(
    conn: Connection, ns: int, removed: Sequence[MemoryVersion], added: Mapping[int, NewMemory]
) -> Arrangement:
    """The turns as they will be, with their vectors."""
    former = {
        row.id: Place(row.session_id, row.place, row.id)
        for row in removed
        if row.session_id is not None and row.place is not None
    }
    arriving = [
        Turn(doc, destination(item.id, session, item.input.position, former), item.embedding.astype(np.float16))
        for doc, item in added.items()
        if (session := session_of(item.input)) is not None
    ]
    touched = [*former.values(), *(turn.place for turn in arriving)]
    stored = await turns.around(conn, ns, touched, gone=[row.doc for row in removed])
    return arrange(stored, assign_places(arriving, former.values(), stored), former.values())
