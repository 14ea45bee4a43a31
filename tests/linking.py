"""What a query means in a namespace of a test's database."""

from __future__ import annotations

from functools import partial
from typing import Any

from psycopg import AsyncConnection

from graph.adjacency import Adjacency, read_edges
from graph.linking import look_up
from graph.resolution import MENTIONS_CAP, Seed, resolve


async def link(conn: AsyncConnection[Any], ns: int, query: str) -> list[Seed]:
    """The entities that a query is most about, best first."""
    graph = Adjacency(*await read_edges(conn, ns))
    row = await (await conn.execute("select next_doc from namespace where ns = %s", (ns,))).fetchone()
    mentions_of = partial(graph.mentions, cap=MENTIONS_CAP)
    return resolve(await look_up(conn, ns, query), mentions_of, row[0] if row else 0)
