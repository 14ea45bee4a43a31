"""The entities of a query in a namespace of a test's database."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from psycopg import AsyncConnection

from graph.adjacency import Adjacency, read_edges
from graph.linking import complete, possible_names, to_complete
from graph.merges import read_roots
from graph.resolution import MENTIONS_CAP, EntityCandidate, Seed, resolve
from graph.spellings import Spellings
from retrieval.index.entity_names import read_names
from retrieval.index.slots import Slots

_MEMORIES = 10_000
"""More than a test writes."""


async def link(conn: AsyncConnection[Any], ns: int, query: str) -> list[Seed]:
    """The entities that a query is most about, best first."""
    spelled, found, graph, memories = await _look_up(conn, ns, query)
    return resolve(spelled, found, partial(graph.mentions, cap=MENTIONS_CAP), memories)


async def found_for(conn: AsyncConnection[Any], ns: int, query: str) -> list[EntityCandidate]:
    """All entities that a query may mention, from the current tables."""
    _, found, _, _ = await _look_up(conn, ns, query)
    return found


async def _look_up(
    conn: AsyncConnection[Any], ns: int, query: str
) -> tuple[Spellings, list[EntityCandidate], Adjacency, int]:
    roots = await read_roots(conn, ns)
    graph = Adjacency(*await read_edges(conn, ns, roots=roots))
    names = await read_names(conn, ns, Slots(), roots=roots.values(), parts=1)
    row = await (await conn.execute("select next_doc from namespace where ns = %s", (ns,))).fetchone()
    memories = row[0] if row else 0
    spelled = possible_names(query)
    found = names.find(spelled, partial(graph.mentions, cap=1), roots, np.ones(_MEMORIES, np.bool_))
    prefixes, acronyms = to_complete(spelled, found)
    return spelled, found + await complete(conn, ns, prefixes, acronyms), graph, memories
