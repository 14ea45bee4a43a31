"""What stands in the HNSW index: new vectors enter it in the background, those of small namespaces never.

To enter one costs more than all else that a write does in the database, and the index only stands in until vectors are
in memory (docs/decisions/0030-vectors-outside-the-index.md). So they are written outside of it, and whoever searches by
it compares those as well (`vectors.by_index`).
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

MOST_OUTSIDE = 20_000
"""Vectors of a namespace that stay outside: to compare as many takes the database 20 to 40 ms."""

AT_ONCE = 200
"""Vectors that enter the index per transaction: half a second, in which their memories cannot be changed."""

_MOST_PER_PASS = 2_000
_SHARE_PER_PASS = 20

# What was never given a vector or has been deleted counts as well: to count the rest would read all of it.
_CROWDED = """
    select n.ns, n.next_doc - outside.first - %(most)s
    from namespace n cross join lateral (
        select m.doc from memory m where m.ns = n.ns and not m.indexed order by m.doc limit 1
    ) as outside (first)
    where n.next_doc > %(most)s and n.next_doc - outside.first > %(most)s
    order by n.ns
"""

# Waits for nobody, so that it can be in no deadlock; what it skips a later pass finds.
_ENTER = """
    update memory set indexed = true where ns = %(ns)s and doc = any(array(
        select doc from memory where ns = %(ns)s and not indexed order by doc limit %(limit)s
        for no key update skip locked
    ))
"""


async def enter_some(conn: AsyncConnection[Any]) -> None:
    """Enter some vectors of each namespace that has too many outside of the index, the oldest first.

    A twentieth of them, between 200 and 2,000, in short transactions, so that a pass takes seconds; `conn` is in none.
    """
    for ns, too_many in await (await conn.execute(_CROWDED, {"most": MOST_OUTSIDE})).fetchall():
        for _ in range(0, min(max(too_many // _SHARE_PER_PASS, 1), _MOST_PER_PASS), AT_ONCE):
            if not (await conn.execute(_ENTER, {"ns": ns, "limit": AT_ONCE})).rowcount:
                break
