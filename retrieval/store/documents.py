"""Documents in the memory table: a document consists of its chunks and has no row itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from postgres.connection import Connection, fetch
from retrieval.store import memories
from retrieval.store.visibility import Condition
from retrieval.types.memory import Memory

# Groups come in index order, so that no more are computed than the page has.
_PAGE: LiteralString = """
    select d.document_id, d.chunks, first.title, first.created_at, first.tags, first.metadata
    from (
        select m.document_id, count(*) as chunks from memory m
        where m.ns = %(ns)s and m.kind = 'chunk' and m.document_id is not null
            and (%(after)s::text is null or m.document_id > %(after)s::text)
        group by m.document_id order by m.document_id limit %(limit)s
    ) as d
        cross join lateral (
            select m.title, m.created_at, m.tags, m.metadata from memory m
            where m.ns = %(ns)s and m.kind = 'chunk' and m.document_id = d.document_id
            order by m.position, m.id collate "C" limit 1
        ) as first
    order by d.document_id
"""


class StoredDocument(NamedTuple):
    """A listed document: its number of chunks, and the fields of its first chunk."""

    id: str
    chunks: int
    title: str | None
    created_at: datetime
    tags: list[str]
    metadata: dict[str, Any]


def chunks_of(document_id: str) -> Condition:
    """The chunks of a document."""
    return Condition("m.kind = 'chunk' and m.document_id = %(document_id)s", {"document_id": document_id})


async def chunks(conn: Connection, ns: int, document_id: str) -> list[Memory]:
    """A document's chunks in order; empty if there is no such document."""
    found = [stored.memory for stored in await memories.read(conn, ns, chunks_of(document_id))]
    return sorted(found, key=lambda chunk: (chunk.position is None, chunk.position, chunk.id))


async def page(conn: Connection, ns: int, *, after: str | None, limit: int) -> list[StoredDocument]:
    """Documents with ids above `after`, by id in the database's text order."""
    return [StoredDocument(*row) for row in await fetch(conn, _PAGE, {"ns": ns, "after": after, "limit": limit})]
