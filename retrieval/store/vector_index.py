"""Maintaining the HNSW index: new vectors are added in the background, those of small namespaces never.

Adding one costs more than the rest of a write in the database, and the index is only used until vectors are in memory
(docs/decisions/0030-vectors-outside-the-index.md). So vectors are written outside it, and a search by index compares
those as well (`vectors.by_index`).
"""

from __future__ import annotations

from postgres.connection import Connection, fetch

MOST_OUTSIDE = 20_000
"""Number of latest ordinals whose vectors stay outside: the database compares as many in 20 to 40 ms."""

AT_ONCE = 50
"""Vectors added to the index per transaction, which takes 0.2 s; writers of these memories wait meanwhile."""

_LEAST_PER_PASS, _MOST_PER_PASS = 200, 2_000
_PART_PER_PASS = 20

# Includes an upper bound of the vectors to add, as counting would read them all.
_OVERDUE = """
    select n.ns, n.next_doc - %(most)s, n.next_doc - %(most)s - outside.first
    from namespace n cross join lateral (
        select m.doc from memory m where m.ns = n.ns and not m.indexed order by m.doc limit 1
    ) as outside (first)
    where n.next_doc > %(most)s and outside.first < n.next_doc - %(most)s
    order by n.ns
"""

# Never waits for a lock, so it cannot deadlock; a later pass finds the rows skipped.
_ENTER = """
    update memory set indexed = true where ns = %(ns)s and doc = any(array(
        select doc from memory where ns = %(ns)s and doc < %(end)s and not indexed order by doc limit %(limit)s
        for no key update skip locked
    ))
"""


async def enter_some(conn: Connection) -> None:
    """Add some vectors of each namespace to the index, oldest first, except those of its latest memories.

    Adds a twentieth of them, between 200 and 2,000, in short transactions, so that a pass takes seconds; `conn` is in
    no transaction.
    """
    for ns, end, most in await fetch(conn, _OVERDUE, {"most": MOST_OUTSIDE}):
        for _ in range(0, min(max(most // _PART_PER_PASS, _LEAST_PER_PASS), _MOST_PER_PASS), AT_ONCE):
            if not (await conn.execute(_ENTER, {"ns": ns, "end": end, "limit": AT_ONCE})).rowcount:
                break
