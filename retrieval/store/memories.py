"""The memory table: insert, lookup, listing, deletion, supersession."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, LiteralString, NamedTuple

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncCursor

from graph.graph_rows import DocGraph
from postgres.arrays import array_text, text_array
from postgres.connection import Connection, fetch
from postgres.prepared import BoundStatement, PendingResult, PreparedStatement, Rows, send
from retrieval.errors import NotFound
from retrieval.store.locking import SUPERSEDED, SUPERSEDED_BY
from retrieval.store.namespaces import Namespace
from retrieval.store.visibility import Condition, by_id, seen_by
from retrieval.text.analysis import TermBag
from retrieval.types.memory import Kind, Memory, MemoryInput, as_superseded
from retrieval.types.search import Filters, SearchOptions

# Not with `copy`, which cannot be in a pipeline. PostgreSQL has no array of arrays of different lengths.
_INSERT: LiteralString = """
    insert into memory (ns, doc, id, kind, text, title, speaker, session_id, position, document_id, created_at,
        expires_at, tags, metadata, entities, relations, fingerprint, length, embedding, indexed, traits)
    select %(ns)s, doc, id, kind, text, title, speaker, session_id, position, document_id, created_at, expires_at,
        tags::text[], metadata, entities, relations, fingerprint, length, embedding, false, traits
    from unnest(%(docs)s::integer[], %(ids)s::text[], %(kinds)s::text[], %(texts)s::text[], %(titles)s::text[],
        %(speakers)s::text[], %(sessions)s::text[], %(positions)s::integer[], %(documents)s::text[],
        %(created)s::timestamptz[], %(expires)s::timestamptz[], %(tags)s::text[], %(metadata)s::jsonb[],
        %(entities)s::jsonb[], %(relations)s::jsonb[], %(fingerprints)b::bytea[], %(lengths)s::integer[],
        %(embeddings)b::halfvec[], %(traits)s::integer[])
        as new (doc, id, kind, text, title, speaker, session_id, position, document_id, created_at, expires_at, tags,
            metadata, entities, relations, fingerprint, length, embedding, traits)
"""

# In the order of `Memory`'s fields, followed by the store's own columns.
_COLUMNS: LiteralString = (
    """
    m.id, m.text, m.kind, m.title, m.speaker, m.session_id, m.position, m.document_id, m.created_at,
    m.expires_at, m.tags, m.metadata, m.entities, m.relations,
    """ + SUPERSEDED + " as supersedes, " + SUPERSEDED_BY + " as superseded_by, m.fingerprint, m.doc"
)  # fmt: skip

# Without `order by`: PostgreSQL would read the namespace by ordinal, and check each of its ids against those wanted.
_READ = "select " + _COLUMNS + " from memory m where m.ns = %(ns)s"

# Follows supersession in both directions; `union` ends a cycle.
_HISTORY = (
    """
    with recursive related (id) as (
        select %(id)s::text
        union
        select other.id from related r cross join lateral (
            select x.old from memory m join supersession x on x.ns = m.ns and x.doc = m.doc
            where m.ns = %(ns)s and m.id = r.id
            union all
            select m.id from supersession x join memory m on m.ns = x.ns and m.doc = x.doc
            where x.ns = %(ns)s and x.old = r.id
        ) as other (id)
    )
    select """ + _COLUMNS + """
    from memory m where m.ns = %(ns)s and m.id in (select id from related order by id <> %(id)s, id limit %(most)s)
    order by m.created_at, m.doc
    """
)  # fmt: skip

DECODED_AT_ONCE = 32
"""Memories decoded before yielding to the event loop: each may have 64 KB of metadata."""

_LIST = _READ + " and m.doc > %(after)s and <condition> order by m.doc limit %(limit)s"

# psycopg's JSON decoding takes longer than all other columns together.
_SHOWN: LiteralString = """
    select m.doc, m.id, m.text, m.kind, m.title, m.speaker, m.session_id, m.document_id, m.created_at, m.expires_at,
        m.tags, m.metadata::text
    from memory m where m.ns = %(ns)s
"""
_HYDRATE = PreparedStatement(_SHOWN + " and m.doc = any(%(docs)s::integer[])")

_HYDRATE_BY_ID: LiteralString = _SHOWN + " and m.id = any(%(ids)s::text[]) and <condition>"

_WITH_METADATA = PreparedStatement(
    "select doc from memory where ns = %(ns)s and metadata @> %(metadata)s::jsonb order by doc"
)

_DELETE = """
    with superseding as (delete from supersession where ns = %(ns)s and doc = any(%(docs)s)),
        reembedded as (delete from new_embedding where ns = %(ns)s and doc = any(%(docs)s))
    delete from memory where ns = %(ns)s and doc = any(%(docs)s) returning entities
"""

_SUPERSEDE = """
    insert into supersession (ns, doc, place, old)
    select %(ns)s, * from unnest(%(docs)s::integer[], %(places)s::smallint[], %(old)s::text[])
"""

# Both conditions on `m.doc` are needed: with the join alone the planner may scan the namespace while the table is new
# and has no statistics.
_SET_EMBEDDINGS = """
    update memory m set embedding = new.embedding, indexed = false
    from unnest(%(docs)s::integer[], %(embeddings)b::halfvec[]) as new (doc, embedding)
    where m.ns = %(ns)s and m.doc = new.doc and m.doc = any(%(docs)s::integer[])
"""

_EMBEDDINGS_AT_ONCE = 5_000

_SUPERSEDED_AT = """(
    select min(new.created_at) from supersession x join memory new on new.ns = x.ns and new.doc = x.doc
    where x.ns = %(ns)s and x.old = m.id and new.id <> m.id
)"""

_REFRESH_SUPERSESSION = (
    "update memory m set indexed = false, superseded_at = " + _SUPERSEDED_AT
    + " where m.ns = %(ns)s and m.id = any(%(ids)s) and m.superseded_at is distinct from " + _SUPERSEDED_AT
    + " returning m.doc"
)  # fmt: skip


class StoredMemory(NamedTuple):
    """A memory, the hash of what the caller sent, and its ordinal."""

    memory: Memory
    fingerprint: bytes
    doc: int


class HydratedMemory(NamedTuple):
    """What a search result shows of a memory, in the order of `_SHOWN`'s columns after the ordinal."""

    id: str
    text: str
    kind: Kind
    title: str | None
    speaker: str | None
    session_id: str | None
    document_id: str | None
    created_at: datetime
    expires_at: datetime | None
    tags: list[str]
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMemory:
    """A memory ready to be written, with its terms and its part of the graph.

    Attributes:
        embedding: of its own text or, for a turn, in its context; shape (dimensions,).
    """

    id: str
    input: MemoryInput
    fingerprint: bytes
    created_at: datetime
    bag: TermBag
    graph: DocGraph
    traits: int
    embedding: NDArray[np.float32]

    @property
    def may_exist(self) -> bool:
        """Whether a memory with this id, or one that supersedes it, may be stored: not if the id was generated."""
        return self.input.id is not None


async def insert(conn: Connection, ns: int, memories: Mapping[int, NewMemory]) -> None:
    """Insert memories by ordinal, in their order. An existing id raises psycopg's UniqueViolation."""
    rows = memories.values()
    given = [memory.input for memory in rows]
    superseding = [
        (doc, place, old) for doc, memory in memories.items() for place, old in enumerate(memory.input.superseded_ids)
    ]
    if superseding:
        docs, places, old = zip(*superseding, strict=True)
        named = {"docs": array_text(docs), "places": array_text(places), "old": text_array(old)}
        await conn.execute(_SUPERSEDE, {"ns": ns, **named})
    await conn.execute(
        _INSERT,
        {
            "ns": ns,
            "docs": array_text(memories),
            "ids": text_array([memory.id for memory in rows]),
            "kinds": text_array([each.kind for each in given]),
            "texts": text_array([each.text for each in given]),
            "titles": text_array([each.title for each in given]),
            "speakers": text_array([each.speaker for each in given]),
            "sessions": text_array([each.session_id for each in given]),
            "positions": array_text(each.position for each in given),
            "documents": text_array([each.document_id for each in given]),
            "created": _time_array(memory.created_at for memory in rows),
            "expires": _time_array(each.expires_at for each in given),
            "tags": text_array([text_array(each.tags) for each in given]),
            "metadata": _json_array(each.metadata for each in given),
            "entities": _json_array(each.entities for each in given),
            "relations": _json_array(each.relations for each in given),
            "fingerprints": [memory.fingerprint for memory in rows],
            "lengths": array_text(memory.bag.length for memory in rows),
            "embeddings": [HalfVector(memory.embedding) for memory in rows],
            "traits": array_text(memory.traits for memory in rows),
        },
    )


def _time_array(times: Iterable[datetime | None]) -> str:
    """In UTC, as PostgreSQL rejects offsets of sixteen hours or more."""
    return array_text(None if time is None else time.astimezone(UTC) for time in times)


def _json_array(values: Iterable[object]) -> str:
    return text_array([msgspec.json.encode(value).decode() for value in values])


async def get(conn: Connection, namespace: Namespace, memory_id: str) -> StoredMemory:
    """One memory, whether or not searches can see it; raises NotFound if it does not exist."""
    found = await read(conn, namespace.ns, by_id([memory_id]))
    if not found:
        raise NotFound(f"there is no memory {memory_id!r} in namespace {namespace.name!r}")
    return found[0]


async def read(conn: Connection, ns: int, condition: Condition | None) -> Sequence[StoredMemory]:
    """Some memories, in the order of insertion."""
    if condition is None:
        return ()
    cursor = await conn.execute(_READ + " and (" + condition.sql + ")", {"ns": ns, **condition.parameters})
    return sorted(await _all_stored(cursor), key=lambda each: each.doc)


async def history(conn: Connection, namespace: Namespace, memory_id: str, *, most: int) -> list[Memory]:
    """A memory with those it superseded and those that superseded it, transitively in all branches, oldest first.

    At most `most`. Raises NotFound if it does not exist.
    """
    rows = await fetch(conn, _HISTORY, {"ns": namespace.ns, "id": memory_id, "most": most})
    found = [_stored(row).memory for row in rows]
    if memory_id not in (memory.id for memory in found):  # others may name one that is not there
        raise NotFound(f"there is no memory {memory_id!r} in namespace {namespace.name!r}")
    return found


async def page(conn: Connection, ns: int, filters: Filters, *, after: int, limit: int) -> Sequence[StoredMemory]:
    """Memories that match the filters with ordinals above `after`, in the order of insertion."""
    condition = seen_by(SearchOptions(filters=filters, include_superseded=True))
    parameters = {**condition.parameters, "ns": ns, "after": after, "limit": limit}
    return await _all_stored(await conn.execute(_LIST.replace("<condition>", condition.sql), parameters))


class HydratedRows:
    """Memories as search results show them, by ordinal; decoded on access."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._row_of = {doc: row for row, doc in enumerate(rows.integers(0))}

    def get(self, doc: int) -> HydratedMemory | None:
        """One memory; None if it was deleted in the meantime."""
        row = self._row_of.get(doc)
        return None if row is None else _hydrated(self._rows[row])


async def hydrate(conn: Connection, ns: int, docs: Iterable[int]) -> PendingResult:
    """Send the query for memories by ordinal; `HydratedRows` reads the result."""
    return await send(conn, _HYDRATE, {"ns": ns, "docs": array_text(docs)})


async def hydrate_by_id(
    conn: Connection, ns: int, ids: Iterable[str], condition: Condition
) -> Mapping[str, HydratedMemory]:
    """Memories as search results show them, by id; absent if not stored or without meeting the condition."""
    parameters = {**condition.parameters, "ns": ns, "ids": text_array([*ids])}
    rows = await fetch(conn, _HYDRATE_BY_ID.replace("<condition>", condition.sql), parameters, binary=True)
    return {memory.id: memory for memory in map(_hydrated, rows)}


def asking_metadata(ns: int, metadata: Mapping[str, Any]) -> BoundStatement:
    """Query for the ordinals of the memories whose metadata contain `metadata`, one per row."""
    return _WITH_METADATA, {"ns": ns, "metadata": msgspec.json.encode(metadata).decode()}


async def delete(conn: Connection, ns: int, docs: Sequence[int]) -> set[str]:
    """Delete rows; returns the names that callers had given as entities."""
    return {each["name"] for (given,) in await fetch(conn, _DELETE, {"ns": ns, "docs": list(docs)}) for each in given}


async def set_embeddings(conn: Connection, ns: int, embeddings: Mapping[int, NDArray[np.float32]]) -> None:
    """Replace stored vectors, given by ordinal."""
    stored = list(embeddings)
    for start in range(0, len(stored), _EMBEDDINGS_AT_ONCE):
        docs = stored[start : start + _EMBEDDINGS_AT_ONCE]
        vectors = [HalfVector(embeddings[doc]) for doc in docs]
        await conn.execute(_SET_EMBEDDINGS, {"ns": ns, "docs": array_text(docs), "embeddings": vectors})


async def refresh_supersession(conn: Connection, ns: int, ids: Sequence[str]) -> list[int]:
    """Recompute when each id was first superseded; returns the ordinals that changed."""
    if not ids:
        return []
    return [doc for (doc,) in await fetch(conn, _REFRESH_SUPERSESSION, {"ns": ns, "ids": text_array(ids)})]


def _hydrated(row: Sequence[Any]) -> HydratedMemory:
    """Decode a row of `_SHOWN`."""
    _, *shown, metadata = row
    return HydratedMemory._make((*shown, {} if metadata == "{}" else orjson.loads(metadata)))


async def _all_stored(cursor: AsyncCursor[Any]) -> list[StoredMemory]:
    """Decode rows of `_COLUMNS`, yielding to the event loop in between."""
    found: list[StoredMemory] = []
    while rows := await cursor.fetchmany(DECODED_AT_ONCE):
        found += map(_stored, rows)
        await asyncio.sleep(0)
    return found


def _stored(row: Sequence[Any]) -> StoredMemory:
    """Decode a row of `_COLUMNS`."""
    *values, fingerprint, doc = row
    fields = dict(zip(Memory.__struct_fields__, values, strict=True))
    fields["supersedes"] = as_superseded(fields["supersedes"])
    return StoredMemory(msgspec.convert(fields, Memory), fingerprint, doc)
