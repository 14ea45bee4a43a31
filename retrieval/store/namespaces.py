"""Namespaces: lookup, settings, ordinals, counts, deletion."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, LiteralString, NamedTuple

import msgspec
from psycopg.errors import NumericValueOutOfRange
from psycopg.types.json import Jsonb

from postgres.connection import Connection, fetch
from retrieval.errors import Conflict, InvalidInput, NamespaceNotFound, NotFound, VectorsReplaced
from retrieval.store.pool import Pool
from retrieval.types.namespace import (
    DEFAULT_EMBEDDER,
    EmbedderName,
    NamespaceInfo,
    NamespaceInput,
    NamespaceReceipt,
    NamespaceSettings,
)
from retrieval.validation import LETTER, check_names

_NAME = re.compile(rf"(?:{LETTER}|[.:@+\-]){{1,128}}")

CURRENT: LiteralString = """
    ns, settings::text, next_doc, generation,
        (extract(epoch from clock_timestamp() - '2000-01-01Z'::timestamptz) * 1000000)::bigint
"""
"""Columns: a namespace with undecoded settings, and the time in microseconds since 2000, as PostgreSQL stores it."""

_FIND: LiteralString = "select ns, name, settings, next_doc, generation from namespace where name = %(name)s"
_FIND_FOR_UPDATE = _FIND + " for update"

# Sets a key column, and so locks the row `for update`. It takes a number from the sequence even if there is a row.
_LOCK_OR_CREATE = """
    insert into namespace (name, settings) values (%(name)s, jsonb_build_object('embedder', %(embedder)s::text))
    on conflict (name) do update set name = excluded.name
    returning ns, name, settings, next_doc, generation
"""

_CHANGE = """
    update namespace set settings = %(settings)s, generation = generation + %(is_outdated)s::integer where ns = %(ns)s
"""

_LOCK: LiteralString = "select generation from namespace where ns = %(ns)s for "

# Commits asynchronously, as all writers of a namespace would queue for the flush. Later writes with these ordinals
# flush, and WAL is flushed in order.
_ALLOCATE = """
    update namespace set next_doc = next_doc + %(docs)s where ns = %(ns)s
    returning next_doc - %(docs)s, set_config('synchronous_commit', 'off', true)
"""

_COUNT_WRITTEN = "update namespace set next_doc = greatest(next_doc, %(docs)s) where ns = %(ns)s"

# In the order of `NamespaceInfo`'s fields.
_LIST = """
    select n.name, n.settings, n.created_at,
        (select count(*) from memory m where m.ns = n.ns),
        (select count(*) from entity e where e.ns = n.ns),
        (select count(*) from mention t where t.ns = n.ns),
        (select count(*) from relation r where r.ns = n.ns)
    from namespace n where %(names)s::text[] is null or n.name = any(%(names)s) order by n.name
"""

MOST_NAMED = 5
"""Most namespaces named as examples in a message."""

_EMBEDDERS = """
    select settings->>'embedder', (array_agg(name order by name))[:%(most)s] from namespace
    where settings->>'embedder' <> %(default)s group by 1 order by 1
"""

_LARGEST = "select name from namespace where next_doc >= %(least)s order by next_doc desc, ns limit 1000"

# Work on a large part of a namespace, or on thousands of memories, may exceed the usual statement timeout.
ALLOW_LONG_STATEMENTS = "set local statement_timeout = '30min'"

# By the key of the receipt.
_TABLES: Mapping[str, LiteralString] = {
    "supersessions": "supersession", "memories": "memory", "memory_changes": "memory_change",
    "index_files": "index_file", "turns": "turn", "new_embeddings": "new_embedding",
    "bm25_tail": "bm25_tail", "bm25_postings": "bm25_posting", "bm25_segments": "bm25_segment",
    "bm25_tombstones": "bm25_tombstone", "mentions": "mention", "relations": "relation",
    "entity_aliases": "entity_alias", "entity_merges": "entity_merge", "entity_tokens": "entity_token",
    "entities": "entity", "feedback": "feedback", "queries": "query_log", "shadow_runs": "shadow_run",
    "jobs": "job", "journals": "journal", "namespaces": "namespace",
}  # fmt: skip
_DELETE = {what: "delete from " + table + " where ns = %(ns)s" for what, table in _TABLES.items()}


class Namespace(NamedTuple):
    """A row of the table, in the order of the statements' columns.

    Attributes:
        generation: of its vectors, which cannot be compared with those of another generation, and of the settings by
            which memories are analysed.
    """

    ns: int
    name: str
    settings: NamespaceSettings
    next_doc: int
    generation: int


def check_name(name: str) -> None:
    """Check that a name is valid; raises InvalidInput if it is not."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("must be 1 to 128 letters, digits or any of _ . : @ + -", loc=("namespace",))


def check_new_name(name: str) -> None:
    """Check the name of a namespace to write to.

    Raises InvalidInput if it is invalid, or would be dropped from the end of a URL path.
    """
    check_name(name)
    check_names(namespace=name)


async def find(conn: Connection, name: str) -> Namespace:
    """The namespace with that name; raises InvalidInput for a bad name, NotFound if there is none."""
    check_name(name)
    namespace = await _find(conn, name)
    if namespace is None:
        raise NamespaceNotFound(name)
    return namespace


@asynccontextmanager
async def opened(pool: Pool, name: str) -> AsyncIterator[tuple[Connection, Namespace]]:
    """A connection and the namespace with that name; raises as `find` does."""
    async with pool.connection() as conn:
        yield conn, await find(conn, name)


async def find_or_new(conn: Connection, name: str, *, embedder: EmbedderName = DEFAULT_EMBEDDER) -> Namespace:
    """The namespace with that name, or one to `create`: its number is 0, its settings but the embedder are defaults."""
    return await _find(conn, name) or Namespace(0, name, NamespaceSettings(embedder=embedder), 0, 0)


async def create(conn: Connection, new: Namespace) -> Namespace:
    """Create a namespace; raises VectorsReplaced if another writer has just created it with other settings."""
    created = await _lock_or_create(conn, new.name, new.settings.embedder)
    if created.settings != new.settings:
        raise VectorsReplaced
    return created


async def _find(conn: Connection, name: str, statement: LiteralString = _FIND) -> Namespace | None:
    rows = await fetch(conn, statement, {"name": name})
    return _decoded(*rows[0]) if rows else None


async def _lock_or_create(conn: Connection, name: str, embedder: EmbedderName) -> Namespace:
    [row] = await fetch(conn, _LOCK_OR_CREATE, {"name": name, "embedder": embedder})
    return _decoded(*row)


@lru_cache(maxsize=256)
def settings_of(stored: str) -> NamespaceSettings:
    """The settings that `CURRENT` selects; cached, as every query reads those of its namespace."""
    return msgspec.json.decode(stored, type=NamespaceSettings)


def _decoded(ns: int, name: str, settings: dict[str, Any], *others: Any) -> Namespace:
    return Namespace(ns, name, msgspec.convert(settings, NamespaceSettings), *others)


async def put(
    conn: Connection, name: str, settings: NamespaceInput, *, embedder: EmbedderName = DEFAULT_EMBEDDER
) -> NamespaceInfo:
    """Create a namespace or change the given settings; a new one without an embedder gets `embedder`.

    Raises Conflict if the language or the embedder would change although memories were analysed with the old one.
    """
    async with conn.transaction():
        namespace = await _find(conn, name, _FIND_FOR_UPDATE) or await _lock_or_create(
            conn, name, settings.embedder or embedder
        )
        language = settings.language or namespace.settings.language
        chosen = settings.embedder or namespace.settings.embedder
        if namespace.next_doc and namespace.settings.language != language:
            raise Conflict(
                f"the language of namespace {name!r} is {namespace.settings.language!r} and stays so: "
                "memories were analysed with it"
            )
        if namespace.next_doc and namespace.settings.embedder != chosen:
            raise Conflict(
                f"the embedder of namespace {name!r} is {namespace.settings.embedder!r} and stays so: memories were "
                f"embedded with it; `trivet reembed` gives them new vectors by {chosen!r}"
            )
        former, given = msgspec.to_builtins(namespace.settings), msgspec.to_builtins(settings)
        changed = {**former, **given, "language": language, "embedder": chosen}
        is_outdated = (language, chosen) != (namespace.settings.language, namespace.settings.embedder)
        await conn.execute(_CHANGE, {"ns": namespace.ns, "settings": Jsonb(changed), "is_outdated": is_outdated})
        [described] = await describe(conn, [name])
        return described


async def lock(conn: Connection, ns: int, mode: LiteralString = "key share") -> int:
    """Keep a namespace and its embedder as they are until the transaction ends; returns its vectors' generation.

    A stronger `mode` of the lock on its row waits for holders of conflicting ones. Raises NotFound if it was deleted.
    """
    rows = await fetch(conn, _LOCK + mode, {"ns": ns})
    if not rows:
        raise NotFound("the namespace was deleted")
    return int(rows[0][0])


async def lock_for_write(conn: Connection, namespace: Namespace) -> None:
    """Lock a namespace to write memories that were analysed for `namespace` as read earlier.

    Raises NotFound if it was deleted, VectorsReplaced if its generation has changed.
    """
    if await lock(conn, namespace.ns) != namespace.generation:
        raise VectorsReplaced


async def allocate_docs(conn: Connection, namespace: Namespace, docs: int) -> range:
    """Allocate ordinals, committed at once so that writers do not block each other.

    Once a namespace has ordinals, its language is fixed, and changing its embedder requires new vectors for all of
    them. Raises NotFound if it was deleted, Conflict if it has too few left.
    """
    try:
        rows = await fetch(conn, _ALLOCATE, {"ns": namespace.ns, "docs": docs})
    except NumericValueOutOfRange as exc:
        raise Conflict(
            f"namespace {namespace.name!r} has fewer than {docs:,} writes left of 2,147,483,647; "
            "import its export into another one"
        ) from exc
    if not rows:
        raise NotFound(f"namespace {namespace.name!r} was deleted")
    [(first, _)] = rows
    return range(first, first + docs)


async def count_written(conn: Connection, ns: int, docs: int) -> None:
    """Mark at least `docs` ordinals as allocated."""
    await conn.execute(_COUNT_WRITTEN, {"ns": ns, "docs": docs})


async def describe(conn: Connection, names: Collection[str] | None = None) -> list[NamespaceInfo]:
    """All namespaces, or those in `names`, with their counts, sorted by name."""
    valid = None if names is None else [name for name in names if _NAME.fullmatch(name)]  # others cannot exist
    rows = await fetch(conn, _LIST, {"names": valid})
    fields = NamespaceInfo.__struct_fields__
    return [msgspec.convert(dict(zip(fields, row, strict=True)), NamespaceInfo) for row in rows]


async def embedders(conn: Connection) -> dict[str, list[str]]:
    """By embedder other than the default, the names of at most `MOST_NAMED` namespaces with it."""
    return dict(await fetch(conn, _EMBEDDERS, {"default": DEFAULT_EMBEDDER, "most": MOST_NAMED}))


async def largest(conn: Connection, *, least: int) -> list[str]:
    """Names of namespaces that have allocated at least `least` ordinals, largest first; at most 1,000."""
    return [name for (name,) in await fetch(conn, _LARGEST, {"least": least})]


async def delete(conn: Connection, name: str) -> NamespaceReceipt:
    """Delete a namespace and everything in it, in one transaction; raises NotFound if it does not exist."""
    async with conn.transaction():
        await conn.execute(ALLOW_LONG_STATEMENTS)
        rows = await fetch(conn, _FIND_FOR_UPDATE, {"name": name})
        if not rows:
            raise NamespaceNotFound(name)
        deleted = {what: (await conn.execute(each, {"ns": rows[0][0]})).rowcount for what, each in _DELETE.items()}
        return NamespaceReceipt(namespace=name, deleted=deleted)
