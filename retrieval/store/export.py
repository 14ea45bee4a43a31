"""Reads a whole namespace in the order of insertion, in one snapshot and in constant memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import orjson
from psycopg.types.json import set_json_loads

from postgres.connection import Connection, fetch
from retrieval.store import namespaces
from retrieval.store.changes import one_snapshot
from retrieval.store.locking import SUPERSEDED
from retrieval.store.namespaces import Namespace
from retrieval.types.memory import MemoryInput, as_superseded

ROWS_AT_ONCE = 128
"""Memories read per round trip: each may have 1 MB."""

_MOST_POSITION = 2**31 - 1

# A client may read slowly; anywhere else a transaction that is idle this long is a mistake.
_PATIENCE: LiteralString = "set idle_in_transaction_session_timeout = '15min'"

_COUNT: LiteralString = "select count(*) from memory where ns = %(ns)s"

# In the order of `MemoryInput`'s fields.
_ALL: LiteralString = (
    """
    select m.text, m.id, m.kind, m.title, m.speaker, m.session_id,
        (case when t.place > %(most_position)s then null else coalesce(t.place, m.position) end)::integer,
        m.document_id, m.created_at, m.expires_at, m.tags, m.metadata, m.entities, m.relations,
        """ + SUPERSEDED + """ as supersedes
    from memory m left join turn t on t.ns = m.ns and t.doc = m.doc
    where m.ns = %(ns)s order by m.doc
    """
)  # fmt: skip


@asynccontextmanager
async def snapshot(conn: Connection, name: str) -> AsyncIterator[Namespace]:
    """The namespace in a transaction that sees no later change; raises NotFound if it does not exist.

    The connection must not be used for anything else before or after.
    """
    await conn.execute(_PATIENCE)
    await conn.execute("set timezone = 'UTC'")
    set_json_loads(orjson.loads, conn)
    async with one_snapshot(conn):
        yield await namespaces.find(conn, name)


async def count(conn: Connection, ns: int) -> int:
    """The number of memories."""
    [[memories]] = await fetch(conn, _COUNT, {"ns": ns})
    return int(memories)


async def rows(conn: Connection, ns: int) -> AsyncIterator[Sequence[dict[str, Any]]]:
    """All memories as callers would send them, including superseded and expired ones, some at a time.

    The position of a turn is its place in its session, whether or not a caller gave it.
    """
    async with conn.cursor("export") as cursor:
        await cursor.execute(_ALL, {"ns": ns, "most_position": _MOST_POSITION})
        while some := await cursor.fetchmany(ROWS_AT_ONCE):
            sent = [dict(zip(MemoryInput.__struct_fields__, row, strict=True)) for row in some]
            yield [fields | {"supersedes": as_superseded(fields["supersedes"])} for fields in sent]
