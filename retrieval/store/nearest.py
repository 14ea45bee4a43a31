"""The stored vectors nearest to a query's: by the index, or exactly among memories that are given.

Vectors have unit length, so their inner products are cosines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, LiteralString

from pgvector import HalfVector
from psycopg import AsyncConnection

from graph.arrays import array_text
from retrieval.store.visibility import eligible_by

WIDEST = 1_000
"""The broadest search that pgvector knows."""

# What is indexed is the embedding and, after it, the direction of the namespace (migration 8).
_BY_INDEX: tuple[LiteralString, LiteralString] = (
    "select m.doc, -(m.embedding <#> %(embedding)s) from memory m where m.ns = %(ns)s and ",
    """
    order by (m.embedding || namespace_direction(m.ns))::halfvec(400)
        <#> (%(embedding)s::halfvec || namespace_direction(%(ns)s))::halfvec(400)
    limit %(k)s
    """,
)

# Whether the index serves is decided here: a plan that is made once for all parameters cannot know how many
# memories meet the conditions, and would sort the namespace. What a scan finds late may be nearer than what it gave
# before; strict order would throw it away.
_GO_BY_INDEX: LiteralString = """
    select set_config('enable_sort', 'off', true),
           set_config('hnsw.iterative_scan', 'relaxed_order', true),
           set_config('hnsw.ef_search', %(ef_search)s, true)
"""

_AMONG: LiteralString = """
    select m.doc, -(m.embedding <#> %(embedding)s) as similarity
    from memory m where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
    order by similarity desc, m.id collate "C" limit %(k)s
"""


def breadth(ef_search: int, memories: int, share: float) -> int:
    """How broad a search of the index is to be.

    The more memories, the broader, so that nearly all of the ten nearest are found; a better graph would do too, but
    every memory that comes would pay for it (docs/decisions/0009-vector-at-scale.md). And where few memories are
    eligible, one broad search finds more, and sooner, than narrow ones that follow one another.

    Args:
        ef_search: what was asked for.
        memories: of the namespace.
        share: of them that is eligible, in (0, 1].

    >>> [breadth(64, memories, 1.0) for memories in (10_000, 100_000, 1_000_000)], breadth(64, 100_000, 0.5)
    ([120, 384, 648], 768)
    """
    return min(WIDEST, round(ef_search * max(1.875, 1.875 + 4.125 * (math.log10(memories) - 4)) / share))


async def by_index(
    conn: AsyncConnection[Any], ns: int, embedding: HalfVector, *, k: int, eligible: Mapping[str, Any], ef_search: int
) -> list[tuple[int, float]]:
    """Memories that are about the nearest, as ordinals with their cosines, nearly in order.

    Args:
        conn: in no transaction.
        ns: number of the namespace.
        embedding: the query's unit vector.
        k: most memories. There are fewer where the index finds no more.
        eligible: the parameters of `eligibility`.
        ef_search: breadth of the search, at most `WIDEST`.
    """
    statement = _BY_INDEX[0] + eligible_by(eligible) + _BY_INDEX[1]
    # A pipeline is one transaction up to its end, which the local settings need, and one round trip.
    async with conn.pipeline():
        await conn.execute(_GO_BY_INDEX, {"ef_search": str(ef_search)})
        cursor = await conn.execute(statement, {**eligible, "ns": ns, "embedding": embedding, "k": k}, binary=True)
    return await cursor.fetchall()


async def among(
    conn: AsyncConnection[Any], ns: int, embedding: HalfVector, *, k: int, docs: Iterable[int]
) -> list[tuple[int, float]]:
    """The `k` nearest of some memories, as ordinals with their cosines: in order, ties by id."""
    parameters = {"ns": ns, "embedding": embedding, "k": k, "docs": array_text(docs)}
    return await (await conn.execute(_AMONG, parameters, binary=True)).fetchall()
