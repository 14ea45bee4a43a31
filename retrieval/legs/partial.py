"""Reading what one query needs of a namespace that is still being loaded.

Keyword results are exact: the lengths and visibility of all memories are read, and postings are fetched by term. The
vector leg uses the database's HNSW index. The graph leg is unavailable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import LiteralString, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from pgvector import HalfVector

from postgres.arrays import array_text
from postgres.connection import Connection, fetch
from retrieval.errors import NamespaceNotFound
from retrieval.index import columns
from retrieval.index.columns import Columns, microseconds
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.slots import Slots
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.strings import NONE
from retrieval.index.terms import Postings, TermPostings
from retrieval.legs.base import within_deadline
from retrieval.legs.bm25 import BESIDE
from retrieval.legs.bm25_scoring import BEFORE_SHARES, TermQuery, ranked
from retrieval.legs.query_terms import QueryTerms, in_periods
from retrieval.profiles.profile import Profile
from retrieval.store import vectors
from retrieval.store.bm25 import postings
from retrieval.store.changes import one_snapshot, take_snapshot
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Pool
from retrieval.store.visibility import seen_by
from retrieval.types.search import Degradation, Leg, SearchOptions, SearchRequest

_STEPS = 2 * (BESIDE + len(BEFORE_SHARES))
"""Turns to read on each side of the best ones: their context, and as many again because some may not be visible."""

_MEMORIES: LiteralString = """
    select next_doc, clock_timestamp(), memories.* from namespace n cross join lateral (
        select string_agg(int4send(doc), ''), string_agg(int4send(length), ''),
            string_agg(timestamptz_send(created_at), ''), string_agg(boolsend(visible), ''),
            string_agg(boolsend(eligible), '')
        from (
            select doc, length, created_at, (<visible>) is true as visible, (<eligible>) is true as eligible
            from memory m where m.ns = n.ns order by doc
        ) as m
    ) as memories where n.ns = %(ns)s
"""


class _PartialNamespace(NamedTuple):
    """A namespace with only the length, time and visibility of its memories loaded.

    Attributes:
        docs: slots of all memories, ascending.
        visible, eligible: masks as in `SearchView`.
    """

    snapshot: NamespaceSnapshot
    docs: NDArray[np.int64]
    visible: NDArray[np.bool_]
    eligible: NDArray[np.bool_]


class PartialReader:
    """Reads what queries need, one query at a time, as each needs memory for all ordinals of the namespace."""

    def __init__(self, pool: Pool, *, leg_timeout_s: float) -> None:
        """Use connections of `pool`; `leg_timeout_s` is the deadline of each leg in seconds."""
        self._pool = pool
        self._leg_timeout_s = leg_timeout_s
        self._one_at_a_time = asyncio.Semaphore(1)

    async def read(
        self,
        namespace: Namespace,
        request: SearchRequest,
        query_terms: QueryTerms,
        profile: Profile,
        embedding: Callable[[], Awaitable[NDArray[np.float32]]],
        *,
        fan_out: int,
    ) -> tuple[NamespaceSnapshot, Sequence[Degradation]]:
        """Read what the legs need to find `fan_out` memories each; also returns the legs that cannot run on it.

        Raises NotFound if the namespace is gone, TimeoutError if even the list of its memories did not arrive in time.
        """
        legs, deadline_s = request.mode.legs, self._leg_timeout_s
        async with asyncio.timeout(deadline_s):
            await self._one_at_a_time.acquire()
        try:
            async with self._pool.connection() as conn, one_snapshot(conn):
                async with asyncio.timeout(deadline_s):
                    part = await _read_masks(conn, namespace, request, query_terms)
                snapshot = part.snapshot
                reads: dict[Leg, Callable[[], Awaitable[object]]] = {
                    Leg.BM25: partial(_postings, conn, part, query_terms, profile, fan_out),
                    Leg.VECTOR: partial(self._nearest, namespace, request, embedding, fan_out),
                }
                outcomes = await asyncio.gather(
                    *(within_deadline(leg.value, read(), deadline_s) for leg, read in reads.items() if leg in legs)
                )
            degraded = [outcome for outcome in outcomes if isinstance(outcome, Degradation)]
            if Leg.GRAPH in legs:
                degraded.append(Degradation(leg=Leg.GRAPH.value, reason="the namespace is still being read"))
            for outcome in outcomes:
                if isinstance(outcome, Postings):
                    snapshot = replace(snapshot, postings=outcome)
                elif isinstance(outcome, np.ndarray):  # read later than `part`: leave out memories added since
                    async with self._pool.connection() as conn:
                        near = snapshot.index.memories.slots.from_ordinals(outcome)
                        await _read(conn, snapshot, near[np.isin(near, part.docs)])
            return snapshot, degraded
        finally:
            self._one_at_a_time.release()

    async def _nearest(
        self,
        namespace: Namespace,
        request: SearchRequest,
        embedding: Callable[[], Awaitable[NDArray[np.float32]]],
        count: int,
    ) -> NDArray[np.int64]:
        """Ordinals of the nearest eligible memories, by the HNSW index and, if that finds too few, exactly."""
        vector, condition = HalfVector(await embedding()), seen_by(request)
        breadth = vectors.breadth(request.ef_search, max(namespace.next_doc, 1), 1.0)
        async with self._pool.connection() as conn:
            found = await vectors.by_index(conn, namespace.ns, vector, k=count, condition=condition, ef_search=breadth)
            if len(found) < count:
                found = await vectors.exactly(conn, namespace.ns, vector, k=count, condition=condition)
            await vectors.check_generation(conn, namespace.ns, namespace.generation)
        return np.array([doc for doc, _ in found], np.int64)


async def _read_masks(
    conn: Connection, namespace: Namespace, request: SearchRequest, query_terms: QueryTerms
) -> _PartialNamespace:
    asked_at, snapshot = time.monotonic(), await take_snapshot(conn)
    visible_by = seen_by(SearchOptions(as_of=request.as_of, include_superseded=request.include_superseded))
    excluded = replace(request.exclude, ids=[])  # these are left out where texts are read
    eligible_by = seen_by(replace(request, exclude=excluded))
    statement = _MEMORIES.replace("<visible>", visible_by.sql).replace("<eligible>", eligible_by.sql)
    found = await fetch(conn, statement, {**eligible_by.parameters, "ns": namespace.ns}, binary=True)
    if not found:
        raise NamespaceNotFound(namespace.name)
    [(next_doc, now, *sent)] = found
    ordinals, *of_memories = map(np.frombuffer, [part or b"" for part in sent], (">i4", ">i4", ">i8", "?", "?"))
    slots = Slots(ordinals.astype(np.int64), given_out=next_doc)
    docs, known = slots.from_ordinals(ordinals.astype(np.int64)), Columns(slots)
    known.ensure(slots.count)
    visible, eligible = np.zeros((2, len(known.alive.values)), np.bool_)
    for column, values in zip((known.length.values, known.created.values, visible, eligible), of_memories, strict=True):
        column[docs] = values
    index = NamespaceIndex(namespace.ns, snapshot, namespace.generation, known)
    with_metadata = np.flatnonzero(eligible) if request.filters.metadata else None
    in_period = docs[in_periods(known.created.values[docs], query_terms.periods)]
    totals = Postings({}, docs.size, int(known.length.values.sum()), in_period.astype(np.int32))
    checked = NamespaceSnapshot(namespace, index, microseconds(now), asked_at, totals, with_metadata)
    return _PartialNamespace(checked, docs, visible, eligible)


async def _postings(
    conn: Connection, part: _PartialNamespace, query_terms: QueryTerms, profile: Profile, fan_out: int
) -> Postings:
    """Postings of the query's terms; reads the columns of the best memories and of the turns around them."""
    known, terms = part.snapshot.index.memories, [*query_terms.terms]
    scope = {"ns": part.snapshot.index.ns, "terms": array_text(terms)}
    rows = await fetch(conn, postings.FETCH_TERMS, scope, binary=True)
    found = {}
    for term, (ordinals, tfs) in postings.decode_terms(rows, terms).items():
        docs = known.slots.from_ordinals(ordinals)
        if (is_listed := np.isin(docs, part.docs)).any():
            docs = docs[is_listed]
            found[term] = TermPostings(docs, tfs[is_listed], known.length.values[docs])
    wanted = replace(part.snapshot.postings, terms=found)
    query = TermQuery.from_postings(wanted, k1=profile.bm25_k1, b=profile.bm25_b, period_weight=profile.period_weight)
    best = [ranked(query, known, mask, mask, count=fan_out)[0] for mask in part[2:]]
    await _read_around(conn, part.snapshot, np.unique(np.concatenate(best)))
    return wanted


async def _read_around(conn: Connection, snapshot: NamespaceSnapshot, turns: NDArray[np.int64]) -> None:
    """Read some turns, and those before and after them."""
    known, seen = snapshot.index.memories, turns
    for _ in range(1 + _STEPS):
        await _read(conn, snapshot, turns)
        links = np.unique(np.concatenate([known.previous.values[turns], known.next.values[turns]]))
        turns = np.setdiff1d(links[links != NONE], seen)
        seen = np.union1d(seen, turns)


async def _read(conn: Connection, snapshot: NamespaceSnapshot, slots: NDArray[np.int64]) -> None:
    """Read the columns of the memories at these slots that are not yet loaded."""
    known = snapshot.index.memories
    if (unread := slots[~known.alive.values[slots]]).size:
        await columns.read(conn, snapshot.index.ns, known, known.slots.to_ordinals(unread).tolist())
