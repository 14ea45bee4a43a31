"""What transactions changed, told to the mirrors of a namespace that server processes hold.

A snapshot of PostgreSQL says of every transaction whether it is visible in it. So whoever read a namespace in one
snapshot and asks for the changes of transactions that are visible now and were not then misses none, in whatever
order they committed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, LiteralString

from psycopg import AsyncConnection

from graph.arrays import array_text

KEPT_S = 3_600
"""How long changes are kept, seconds."""

_RECORD: LiteralString = "insert into memory_change (ns, docs) values (%(ns)s, %(docs)s::integer[])"

_TRIM: LiteralString = "delete from memory_change where at < clock_timestamp() - make_interval(secs => %(kept_s)s)"


async def record(conn: AsyncConnection[Any], ns: int, docs: Collection[int]) -> None:
    """Say, in the transaction that did it, which memories were added, removed or altered."""
    if docs:
        await conn.execute(_RECORD, {"ns": ns, "docs": array_text(sorted(docs))})


async def trim(conn: AsyncConnection[Any]) -> None:
    """Forget what is older than `KEPT_S`."""
    await conn.execute(_TRIM, {"kept_s": KEPT_S})
