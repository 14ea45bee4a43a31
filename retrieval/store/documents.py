"""Documents in the memory table: a document is its chunks, and has no row of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection

from retrieval.store.locking import SUPERSEDED_BY, Which

_OF_DOCUMENT: LiteralString = "m.kind = 'chunk' and m.document_id = %(document_id)s"

_CHUNKS: LiteralString = (
    "select m.id, m.text, m.title, m.created_at, m.tags, m.metadata, "
    + SUPERSEDED_BY
    + " from memory m where m.ns = %(ns)s and "
    + _OF_DOCUMENT
    + """ order by m.position, m.id collate "C" """
)

# Groups come in the order of the index, so no more are made than the page has.
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


class StoredChunk(NamedTuple):
    """A chunk, in the order of `_CHUNKS`."""

    id: str
    text: str
    title: str | None
    created_at: datetime
    tags: list[str]
    metadata: dict[str, Any]
    superseded_by: list[str]


class StoredDocument(NamedTuple):
    """A document of a list: the number of its chunks, and what its first one says of it."""

    id: str
    chunks: int
    title: str | None
    created_at: datetime
    tags: list[str]
    metadata: dict[str, Any]


def chunks_of(document_id: str) -> Which:
    """The chunks of a document."""
    return Which(_OF_DOCUMENT, {"document_id": document_id})


async def chunks(conn: AsyncConnection[Any], ns: int, document_id: str) -> list[StoredChunk]:
    """A document's chunks in their order; none if there is no such document."""
    cursor = await conn.execute(_CHUNKS, {"ns": ns, "document_id": document_id})
    return [StoredChunk(*row) for row in await cursor.fetchall()]


async def page(conn: AsyncConnection[Any], ns: int, *, after: str | None, limit: int) -> list[StoredDocument]:
    """Documents with ids above `after`, by id as the database orders texts."""
    cursor = await conn.execute(_PAGE, {"ns": ns, "after": after, "limit": limit})
    return [StoredDocument(*row) for row in await cursor.fetchall()]
