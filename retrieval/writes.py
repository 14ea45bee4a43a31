"""One transaction over all legs: what a batch adds, replaces and deletes.

Locks are taken in this order, in each kind by ascending key: the namespace's row, the sessions, the rows of the
batch in `memory` with those that it supersedes, those of turns around them (see `store/turns.py`), entities. What a
deletion by filter leaves superseded no more is updated after the rows of `memory` and may stand in its way, and so may
another writer's change of a memory after this one has read whom it supersedes; then the database ends one of the two,
who starts again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph import store as graph_store
from graph.store import DocGraph
from retrieval.drafts import Draft
from retrieval.errors import Collided, Conflict, NotFound
from retrieval.sessions import Arrangement, Arrival, Place, arrange, destination, placed
from retrieval.store import changes, locking, memories, namespaces, postings, turns
from retrieval.store.locking import LockedMemory
from retrieval.store.memories import NewMemory
from retrieval.store.namespaces import Namespace
from retrieval.text.analysis import TermBag
from retrieval.types import Filters


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysed:
    """A draft with what each leg stores of it."""

    draft: Draft
    created_at: datetime
    bag: TermBag
    graph: DocGraph
    traits: int
    embedding: NDArray[np.float32]


async def store(
    conn: AsyncConnection[Any],
    namespace: Namespace,
    analysed: Sequence[Analysed],
    *,
    sessions: Collection[str],
    superseded: Collection[str],
    expected: Mapping[str, bytes],
) -> frozenset[str]:
    """Write analysed memories in one transaction; the ids that were there before.

    Args:
        conn: in autocommit mode.
        namespace: where to.
        analysed: the memories, no id twice; turns of a session in the order in which they go there.
        sessions: those of the memories, and those that they were in.
        superseded: ids of those that the memories supersede, and that they superseded before.
        expected: fingerprints that stored memories must still have.

    Raises:
        NotFound: the namespace was deleted meanwhile.
        Conflict: a memory is no longer as expected.
        Collided: a memory was moved to another session at the same time.
        UniqueViolation: another writer added one of the ids at the same time.
    """
    ns = namespace.ns
    docs = await namespaces.give_out_docs(conn, ns, len(analysed))
    written = {item.draft.id: item for item in analysed}
    numbered = dict(zip(sorted(written), docs or (), strict=docs is not None))
    async with conn.transaction():
        if docs is None or not await namespaces.hold(conn, ns):
            raise NotFound(f"namespace {namespace.name!r} was deleted")
        await turns.lock_sessions(conn, ns, sessions)
        known = {memory_id for memory_id, item in written.items() if item.draft.may_be_stored}
        locked = await locking.lock(conn, ns, known | {*superseded})
        existing = [row for row in locked if row.id in written]
        stored = {row.id: row.fingerprint for row in existing}
        if any(stored.get(memory_id) != fingerprint for memory_id, fingerprint in expected.items()):
            raise Conflict("the memory was changed meanwhile")
        _check_sessions(existing, sessions)
        await _exchange(conn, ns, existing, {numbered[memory_id]: item for memory_id, item in written.items()})
    return frozenset(stored)


async def delete(conn: AsyncConnection[Any], name: str, memory_id: str) -> None:
    """Delete one memory and all traces of it.

    Raises:
        NotFound: no such namespace or memory.
        Collided: it was moved to another session at the same time.
    """
    async with conn.transaction():
        ns = await _hold(conn, name)
        known = await locking.versions(conn, ns, [memory_id])
        sessions = [version.session_id for version in known.values() if version.session_id is not None]
        await turns.lock_sessions(conn, ns, sessions)
        superseded = [version.supersedes for version in known.values() if version.supersedes is not None]
        locked = [row for row in await locking.lock(conn, ns, [memory_id, *superseded]) if row.id == memory_id]
        if not locked:
            raise NotFound(f"there is no memory {memory_id!r} in namespace {name!r}")
        _check_sessions(locked, sessions)
        await _exchange(conn, ns, locked, {})


async def delete_matching(conn: AsyncConnection[Any], name: str, filters: Filters) -> int:
    """Delete all memories that meet the filters; how many.

    Raises:
        NotFound: no such namespace.
        Collided: one was moved to another session at the same time.
    """
    async with conn.transaction():
        ns = await _hold(conn, name)
        sessions = await locking.sessions_matching(conn, ns, filters)
        await turns.lock_sessions(conn, ns, sessions)
        locked = await locking.lock_matching(conn, ns, filters)
        _check_sessions(locked, sessions)
        await _exchange(conn, ns, locked, {})
        return len(locked)


async def _hold(conn: AsyncConnection[Any], name: str) -> int:
    namespace = await namespaces.find(conn, name)
    if not await namespaces.hold(conn, namespace.ns):
        raise NotFound(f"there is no namespace {name!r}")
    return namespace.ns


def _check_sessions(locked: Sequence[LockedMemory], sessions: Collection[str]) -> None:
    """Refuse to change turns of sessions that are not held."""
    held = {None, *sessions}
    if any(row.session_id not in held for row in locked):
        raise Collided("a memory was moved to another session meanwhile")


async def _exchange(
    conn: AsyncConnection[Any], ns: int, removed: Sequence[LockedMemory], added: Mapping[int, Analysed]
) -> None:
    """Take locked memories out of all legs and put others, keyed by new ordinals, into them.

    Those added come in the order in which turns go to the end of a session; their rows are written by ordinal, that
    is by id, so that two writers of the same new ids meet in the same order.
    """
    gone = [row.doc for row in removed]
    arranged = await _rearrange(conn, ns, removed, added)
    lengths, superseded = await memories.delete(conn, ns, gone) if gone else ({}, ())
    if added:
        await memories.insert(
            conn, ns, [_new_memory(doc, added[doc], arranged.vectors.get(doc)) for doc in sorted(added)]
        )
    remixed = {doc: vector for doc, vector in arranged.vectors.items() if doc not in added}
    await memories.set_embeddings(conn, ns, remixed)
    await postings.remove(conn, ns, lengths)
    if added:
        await postings.append(conn, ns, {doc: item.bag for doc, item in added.items()})
    written = {item.draft.id for item in added.values() if item.draft.may_be_stored}
    newly_superseded = {item.draft.input.supersedes for item in added.values() if item.draft.input.supersedes}
    outdated = await memories.refresh_supersession(conn, ns, sorted({*superseded, *written, *newly_superseded}))
    graphs = [replace(item.graph, doc=doc) for doc, item in added.items()]
    await graph_store.write(conn, ns, graphs, removed=gone)
    relinked = [turn.doc for turn in arranged.relinked]
    await changes.record(conn, ns, {*gone, *added, *relinked, *remixed, *outdated})


async def _rearrange(
    conn: AsyncConnection[Any], ns: int, removed: Sequence[LockedMemory], added: Mapping[int, Analysed]
) -> Arrangement:
    """Bring the turn table up to date; what follows for the vectors is in the answer."""
    former = {
        row.id: Place(row.session_id, row.place, row.id)
        for row in removed
        if row.session_id is not None and row.place is not None
    }
    arrivals = [
        Arrival(doc, item.draft.id, item.draft.input.session_id, item.draft.input.position, item.embedding)
        for doc, item in added.items()
        if item.draft.input.session_id is not None
    ]
    touched = [*former.values(), *(destination(arrival, former) for arrival in arrivals)]
    gone = [row.doc for row in removed if row.id in former]
    stored = await turns.around(conn, ns, touched, gone=gone)
    arranged = arrange(stored, placed(arrivals, former, stored), former.values())
    await turns.change(conn, ns, gone=gone, added=arranged.added, relinked=arranged.relinked)
    return arranged


def _new_memory(doc: int, item: Analysed, mixed: NDArray[np.float32] | None) -> NewMemory:
    """A row; the vector of a turn is mixed with those of the turns before it."""
    return NewMemory(
        doc=doc,
        id=item.draft.id,
        input=item.draft.input,
        created_at=item.created_at,
        fingerprint=item.draft.fingerprint,
        length=item.bag.length,
        embedding=item.embedding if mixed is None else mixed,
        traits=item.traits,
    )
