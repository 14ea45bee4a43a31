"""Reading what one query needs of a namespace that is still being loaded.

Keyword results are exact: postings are fetched by term, and lengths for the memories that may be among the best. The
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
from retrieval.errors import NamespaceNotFound
from retrieval.index import columns
from retrieval.index.columns import Columns, microseconds
from retrieval.index.namespace_index import NamespaceIndex, one_snapshot, read_slots
from retrieval.index.slots import NO_SLOT
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.strings import NONE
from retrieval.index.terms import NO_DOCS, Postings, TermPostings
from retrieval.legs import bm25_scoring
from retrieval.legs.base import SearchView, within_deadline
from retrieval.legs.bm25 import BESIDE
from retrieval.legs.query_terms import QueryTerms, in_periods
from retrieval.profiles.profile import Profile
from retrieval.store import memories, vectors
from retrieval.store.bm25 import postings
from retrieval.store.changes import take_snapshot
from retrieval.store.namespaces import Namespace
from retrieval.store.pool import Connection, Pool
from retrieval.store.visibility import eligibility
from retrieval.types.search import Degradation, Leg, SearchRequest

CANDIDATES = 2_000
"""Memories whose columns are read first: those with the highest BM25 bounds, whatever their lengths."""

_STEPS = 2 * (BESIDE + len(bm25_scoring.BEFORE_SHARES))
"""How many turns to read on each side of the best: their context, and as many again that the query may not see."""

_CREATED: LiteralString = """
    select string_agg(int4send(doc), ''), string_agg(timestamptz_send(created_at), '')
    from (select doc, created_at from memory where ns = %(ns)s order by doc) as m
"""

_TOTALS: LiteralString = "select clock_timestamp(), coalesce(sum(length), 0)::bigint from memory where ns = %(ns)s"


class PartialReader:
    """Reads what queries need, one query at a time: each needs memory for all ordinals of the namespace."""

    def __init__(self, pool: Pool, *, leg_timeout_s: float) -> None:
        """Use connections of `pool`; `leg_timeout_s` is the deadline of each leg in seconds."""
        self._pool = pool
        self._leg_timeout_s = leg_timeout_s
        self._turn = asyncio.Semaphore(1)

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
        """Read what the legs need to find `fan_out` memories each; returns also the legs that cannot run on it.

        Raises NotFound if the namespace is gone, TimeoutError if not even the list of its memories came in time.
        """
        legs, deadline_s = request.mode.legs, self._leg_timeout_s
        async with asyncio.timeout(deadline_s):
            await self._turn.acquire()
        try:
            async with self._pool.connection() as conn, one_snapshot(conn):
                async with asyncio.timeout(deadline_s):
                    snapshot, ordinals = await _begin(conn, namespace, request)
                finding = _Finding(conn, snapshot, ordinals, request, query_terms, profile, fan_out)
                finding_words = finding.postings() if Leg.BM25 in legs else _nothing()
                finding_near = (
                    self._nearest(namespace, request, embedding, fan_out) if Leg.VECTOR in legs else _nothing()
                )
                found, docs = await asyncio.gather(
                    within_deadline(Leg.BM25.value, finding_words, deadline_s),
                    within_deadline(Leg.VECTOR.value, finding_near, deadline_s),
                )
            degraded = [outcome for outcome in (found, docs) if isinstance(outcome, Degradation)]
            if Leg.GRAPH in legs:
                degraded.append(Degradation(leg=Leg.GRAPH.value, reason="the namespace is still being read"))
            if isinstance(found, Postings):
                snapshot = replace(snapshot, postings=found)
            if isinstance(docs, np.ndarray):  # of a later snapshot: leave out memories added since
                async with self._pool.connection() as conn:
                    await _read(conn, snapshot, snapshot.index.memories.slots.of(docs[np.isin(docs, ordinals)]))
            return snapshot, degraded
        finally:
            self._turn.release()

    async def _nearest(
        self,
        namespace: Namespace,
        request: SearchRequest,
        embedding: Callable[[], Awaitable[NDArray[np.float32]]],
        count: int,
    ) -> NDArray[np.int64]:
        """Ordinals of the nearest eligible memories, by the HNSW index and, if that finds too few, exactly."""
        vector = HalfVector(await embedding())
        eligible = eligibility(request)
        breadth = vectors.breadth(request.ef_search, max(namespace.next_doc, 1), 1.0)
        async with self._pool.connection() as conn:
            found = await vectors.by_index(conn, namespace.ns, vector, k=count, eligible=eligible, ef_search=breadth)
            if len(found) < count:
                found = await vectors.exactly(conn, namespace.ns, vector, k=count, eligible=eligible)
            await vectors.check_generation(conn, namespace.ns, namespace.generation)
        return np.array([doc for doc, _ in found], np.int64)


async def _nothing() -> None:
    """Stands in for a leg that is not run."""


async def _begin(
    conn: Connection, namespace: Namespace, request: SearchRequest
) -> tuple[NamespaceSnapshot, NDArray[np.int64]]:
    """A namespace of which only the ordinals are known, and these ordinals."""
    asked_at, snapshot = time.monotonic(), await take_snapshot(conn)
    found = await read_slots(conn, namespace.ns)
    if found is None:
        raise NamespaceNotFound(namespace.name)
    slots, _, ordinals = found
    known = Columns(slots)
    known.ensure(slots.count)
    index = NamespaceIndex(namespace.ns, snapshot, namespace.generation, known)
    with_metadata = None
    if request.filters.metadata:
        statement, parameters = memories.asking_metadata(namespace.ns, request.filters.metadata)
        with_metadata = slots.of(np.array([doc for (doc,) in await statement.rows(conn, parameters)], np.int64))
        with_metadata = with_metadata[with_metadata != NO_SLOT]
    [(now, length)] = await (await conn.execute(_TOTALS, {"ns": namespace.ns})).fetchall()
    totals = Postings({}, ordinals.size, length)
    return NamespaceSnapshot(namespace, index, microseconds(now), asked_at, totals, with_metadata), ordinals


async def _read(conn: Connection, snapshot: NamespaceSnapshot, slots: NDArray[np.int64]) -> None:
    """Read the columns of the memories at some slots, unless they are known."""
    known = snapshot.index.memories
    if (unread := slots[~known.alive.values[slots]]).size:
        await columns.read(conn, snapshot.index.ns, known, known.slots.ordinals(unread).tolist())


class _Finding(NamedTuple):
    """A search for the memories with the highest BM25 scores, and its inputs."""

    conn: Connection
    snapshot: NamespaceSnapshot
    ordinals: NDArray[np.int64]
    request: SearchRequest
    query_terms: QueryTerms
    profile: Profile
    fan_out: int

    async def postings(self) -> Postings:
        """Postings of the query's terms; reads the columns of the best memories and of the turns around them."""
        slots, terms = self.snapshot.index.memories.slots, [*self.query_terms.terms]
        scope = {"ns": self.snapshot.index.ns, "terms": array_text(terms)}
        rows = await (await self.conn.execute(postings.FETCH_TERMS, scope, binary=True)).fetchall()
        found = {}
        for term, (docs, tfs) in postings.decode_terms(rows, terms).items():
            is_listed = np.isin(docs, self.ordinals)
            if is_listed.any():
                found[term] = TermPostings(slots.of(docs[is_listed]), tfs[is_listed], np.zeros(0, np.int32))
        totals = replace(self.snapshot.postings, terms=found, period_docs=await self._period_docs())
        await self._read_around(await self._best(totals))
        return self._counted(totals)

    async def _period_docs(self) -> NDArray[np.int32]:
        """The memories of the query's periods."""
        if not self.query_terms.periods:
            return NO_DOCS
        ns, slots = self.snapshot.index.ns, self.snapshot.index.memories.slots
        [(docs, times)] = await (await self.conn.execute(_CREATED, {"ns": ns}, binary=True)).fetchall()
        created = np.frombuffer(times or b"", ">i8").astype(np.int64)
        found = np.frombuffer(docs or b"", ">i4")[in_periods(created, self.query_terms.periods)]
        return slots.of(found).astype(np.int32)

    def _counted(self, found: Postings) -> Postings:
        """Postings with the lengths known so far; others are 0."""
        lengths = self.snapshot.index.memories.length.values
        terms = {term: TermPostings(each.docs, each.tfs, lengths[each.docs]) for term, each in found.terms.items()}
        return replace(found, terms=terms)

    async def _best(self, found: Postings) -> NDArray[np.int64]:
        """The best visible and the best eligible memories.

        A shorter memory scores higher, so scores with length 0 are upper bounds: a memory whose bound is below the
        scores of those read so far is not among the best.
        """
        known = self.snapshot.index.memories
        weigh = partial(
            bm25_scoring.weigh,
            k1=self.profile.bm25_k1,
            b=self.profile.bm25_b,
            period_weight=self.profile.period_weight,
        )
        bounding = weigh(self._counted(found))
        every = np.ones(len(known.alive.values), np.bool_)
        size = CANDIDATES
        while True:
            docs, bounds = bm25_scoring.ranked(bounding, known, every, every, count=size)
            await _read(self.conn, self.snapshot, docs)
            exact = weigh(self._counted(found))
            ranked = [
                bm25_scoring.ranked(exact, known, mask, mask, count=self.fan_out)
                for mask in SearchView.from_request(self.snapshot, self.request)[:2]
            ]
            least = min(float(scores[self.fan_out - 1]) if scores.size >= self.fan_out else 0.0 for _, scores in ranked)
            if docs.size < size or least >= bounds[-1]:
                return np.unique(np.concatenate([best for best, _ in ranked]))
            size *= 4

    async def _read_around(self, turns: NDArray[np.int64]) -> None:
        """Read the turns before and after some turns."""
        known, seen = self.snapshot.index.memories, turns
        for _ in range(_STEPS):
            links = np.unique(np.concatenate([known.previous.values[turns], known.next.values[turns]]))
            turns = np.setdiff1d(links[links != NONE], seen)
            if not turns.size:
                return
            await _read(self.conn, self.snapshot, turns)
            seen = np.union1d(seen, turns)
