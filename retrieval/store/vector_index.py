"""What stands in the HNSW index: new vectors enter it in the background, those of small namespaces never.

To enter one costs more than all else that a write does in the database, and the index only stands in until vectors are
in memory (docs/decisions/0030-vectors-outside-the-index.md). So they are written outside of it, and whoever searches by
it compares those as well (`vectors.by_index`).
"""

from __future__ import annotations

from postgres.connection import Connection, fetch

MOST_OUTSIDE = 20_000
"""The latest ordinals of a namespace, whose vectors stay outside: to compare as many takes the database 20 to 40 ms."""

AT_ONCE = 50
"""Vectors that enter the index per transaction: a fifth of a second, in which who changes their memories waits."""

_LEAST_PER_PASS, _MOST_PER_PASS = 200, 2_000
_PART_PER_PASS = 20

# With the most that there can be to enter: to count them would read them all.
_OVERDUE = """
    select n.ns, n.next_doc - %(most)s, n.next_doc - %(most)s - outside.first
    from namespace n cross join lateral (
        select m.doc from memory m where m.ns = n.ns and not m.indexed order by m.doc limit 1
    ) as outside (first)
    where n.next_doc > %(most)s and outside.first < n.next_doc - %(most)s
    order by n.ns
"""

# Waits for nobody, so that it can be in no deadlock; what it skips a later pass finds.
_ENTER = """
    update memory set indexed = true where ns = %(ns)s and doc = any(array(
        select doc from memory where ns = %(ns)s and doc < %(end)s and not indexed order by doc limit %(limit)s
        for no key update skip locked
    ))
"""


async def enter_some(conn: Connection) -> None:
    """Enter some vectors of all but the latest memories of each namespace, the oldest first.

    A twentieth of them, between 200 and 2,000, in short transactions, so that a pass takes seconds; `conn` is in none.
    """
    for ns, end, most in await fetch(conn, _OVERDUE, {"most": MOST_OUTSIDE}):
        for _ in range(0, min(max(most // _PART_PER_PASS, _LEAST_PER_PASS), _MOST_PER_PASS), AT_ONCE):
            if not (await conn.execute(_ENTER, {"ns": ns, "end": end, "limit": AT_ONCE})).rowcount:
                break
