"""Stored vectors: lookup by ordinal, and nearest neighbours by index or by exact scan.

Vectors have unit length, so their inner products are cosines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from postgres.arrays import array_text, integers, text_array
from postgres.connection import Connection, fetch
from retrieval.errors import VectorsReplaced
from retrieval.store.visibility import Condition

# One row of byte strings that numpy reads: decoding vectors one by one takes several times as long. A turn's own vector
# is stored in addition to the one blended with preceding turns.
_READ: LiteralString = """
    select (select generation from namespace where ns = %(ns)s),
        string_agg(int4send(m.doc), ''), string_agg(halfvec_send(m.embedding), ''),
        string_agg(int4send(t.doc), ''), string_agg(halfvec_send(t.own), '')
    from memory m left join turn t on t.ns = m.ns and t.doc = m.doc
    where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
"""

# The same for memories whose ordinal has changed, returned under the ordinal that the caller knows. Both conditions on
# `m.id` are needed: with the join alone the planner may scan the namespace.
_READ_MOVED: LiteralString = """
    select (select generation from namespace where ns = %(ns)s),
        string_agg(int4send(known.doc), ''), string_agg(halfvec_send(m.embedding), ''),
        string_agg(case when t.doc is not null then int4send(known.doc) end, ''), string_agg(halfvec_send(t.own), '')
    from unnest(%(docs)s::integer[], %(ids)s::text[]) as known (doc, id)
        join memory m on m.id = known.id left join turn t on t.ns = m.ns and t.doc = m.doc
    where m.ns = %(ns)s and m.id = any(%(ids)s::text[])
"""

_GENERATION: LiteralString = "select generation from namespace where ns = %(ns)s"

_HEADER_HALVES = 2
"""A halfvec is sent as its dimensions and two unused bytes, then big-endian half floats."""


class StoredVectors(NamedTuple):
    """Stored vectors of unit length, float32 of shape (n, dimensions).

    Attributes:
        docs: ordinals.
        context_vectors: by which the memories are found; of a turn, its text's blended with those of preceding turns.
        turns: ordinals of those that are turns.
        text_vectors: of the turns' texts alone.
    """

    docs: NDArray[np.int64]
    context_vectors: NDArray[np.float32]
    turns: NDArray[np.int64]
    text_vectors: NDArray[np.float32]

    @classmethod
    def from_columns(
        cls, docs: bytes | None, context_vectors: bytes | None, turns: bytes | None, text_vectors: bytes | None
    ) -> StoredVectors:
        """Decode columns as PostgreSQL sends them."""
        return cls(integers(docs), _vectors(context_vectors), integers(turns), _vectors(text_vectors))


async def read(conn: Connection, ns: int, docs: Collection[int], *, generation: int) -> StoredVectors:
    """The vectors of some memories, in any order; those deleted in the meantime are absent.

    Raises VectorsReplaced if their generation has changed.
    """
    return await _read(conn, _READ, {"ns": ns, "docs": array_text(docs)}, generation)


async def read_text_vectors(
    conn: Connection, ns: int, docs: Mapping[str, int], *, generation: int
) -> dict[str, NDArray[np.float32]]:
    """The vectors of memories' texts alone, without those of preceding turns, keyed like their ordinals.

    Those deleted in the meantime are absent. Raises VectorsReplaced if their generation has changed.
    """
    found = await read(conn, ns, docs.values(), generation=generation)
    by_doc = dict(zip(found.docs.tolist(), found.context_vectors, strict=True))
    by_doc |= dict(zip(found.turns.tolist(), found.text_vectors, strict=True))
    return {key: by_doc[doc] for key, doc in docs.items() if doc in by_doc}


async def read_moved(
    conn: Connection, ns: int, docs: Sequence[int], ids: Sequence[str], *, generation: int
) -> StoredVectors:
    """The current vectors of updated memories, given by former ordinals, which key the result, and ids.

    Those deleted in the meantime are absent. Raises VectorsReplaced if their generation has changed.
    """
    return await _read(conn, _READ_MOVED, {"ns": ns, "docs": array_text(docs), "ids": text_array(ids)}, generation)


async def check_generation(conn: Connection, ns: int, generation: int) -> None:
    """Raise VectorsReplaced unless all vectors read before this call are of that generation."""
    if await fetch(conn, _GENERATION, {"ns": ns}) != [(generation,)]:
        raise VectorsReplaced


async def _read(
    conn: Connection, statement: LiteralString, parameters: Mapping[str, Any], generation: int
) -> StoredVectors:
    [[found, *sent]] = await fetch(conn, statement, parameters, binary=True)
    if found != generation:
        raise VectorsReplaced
    return StoredVectors.from_columns(*sent)


def _vectors(sent: bytes | None) -> NDArray[np.float32]:
    if sent is None:
        return np.empty((0, 0), np.float32)
    width = _HEADER_HALVES + int.from_bytes(sent[:2], "big")
    return np.frombuffer(sent, ">f2").reshape(-1, width)[:, _HEADER_HALVES:].astype(np.float32)


MAX_EF_SEARCH = 1_000
"""The greatest `ef_search` that pgvector allows."""

# The indexed expression is the embedding followed by the namespace's direction (migration 8).
_BY_INDEX: LiteralString = """
    select m.doc, -(m.embedding <#> %(embedding)s) from memory m where m.ns = %(ns)s and m.indexed and <condition>
    order by (m.embedding || namespace_direction(m.ns))::halfvec(400)
        <#> (%(embedding)s::halfvec || namespace_direction(%(ns)s))::halfvec(400)
    limit %(k)s
"""

# The index is forced here: a generic plan cannot know how many memories meet the conditions, and would sort the
# namespace. Later results of an iterative scan may be nearer than earlier ones; strict order would discard them.
_GO_BY_INDEX: LiteralString = """
    select set_config('enable_sort', 'off', true),
           set_config('hnsw.iterative_scan', 'relaxed_order', true),
           set_config('hnsw.ef_search', %(ef_search)s, true)
"""

_NEAREST: LiteralString = """
    select m.doc, -(m.embedding <#> %(embedding)s) as similarity from memory m where m.ns = %(ns)s and <condition>
    order by similarity desc
"""

_EXACTLY = _NEAREST + ', m.id collate "C" limit %(k)s'

# Vectors outside the index (store/vector_index.py), with ties in any order.
_UNINDEXED = _NEAREST.replace("<condition>", "not m.indexed and <condition>") + " limit %(k)s"


def breadth(ef_search: int, memories: int, share: float) -> int:
    """The `ef_search` to use for a namespace of `memories`, of which a `share` in (0, 1] is eligible.

    It grows with the number of memories, so that nearly all of the ten nearest are found; a better graph would do too,
    but at a cost to every insert (docs/decisions/0009-vector-at-scale.md). With few eligible memories, one broad search
    finds more, and sooner, than successive narrow ones.

    >>> [breadth(64, memories, 1.0) for memories in (10_000, 100_000, 1_000_000)], breadth(64, 100_000, 0.5)
    ([120, 384, 648], 768)
    """
    return min(MAX_EF_SEARCH, round(ef_search * max(1.875, 1.875 + 4.125 * (math.log10(memories) - 4)) / share))


async def by_index(
    conn: Connection, ns: int, embedding: HalfVector, *, k: int, condition: Condition, ef_search: int
) -> list[tuple[int, float]]:
    """Approximate nearest neighbours of a unit vector among some memories, as (ordinal, cosine), roughly in order.

    At most `k` from the index, followed by at most `k` of those outside it; `conn` is in no transaction. `ef_search` is
    the breadth of the search, at most `MAX_EF_SEARCH`.
    """
    parameters = {**condition.parameters, "ns": ns, "embedding": embedding, "k": k}
    # A pipeline is one round trip and one transaction, which the local settings need.
    async with conn.pipeline():
        await conn.execute(_GO_BY_INDEX, {"ef_search": str(ef_search)})
        cursor = await conn.execute(_BY_INDEX.replace("<condition>", condition.sql), parameters, binary=True)
        unindexed = await conn.execute(_UNINDEXED.replace("<condition>", condition.sql), parameters, binary=True)
    return await cursor.fetchall() + await unindexed.fetchall()


async def exactly(
    conn: Connection, ns: int, embedding: HalfVector, *, k: int, condition: Condition
) -> list[tuple[int, float]]:
    """Exact nearest neighbours among some memories: like `by_index`, but in order, ties by id."""
    parameters = {**condition.parameters, "ns": ns, "embedding": embedding, "k": k}
    return await fetch(conn, _EXACTLY.replace("<condition>", condition.sql), parameters, binary=True)
