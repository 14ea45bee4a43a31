"""Figures from the database itself: bytes by table, matches of filters, exact nearest neighbours, deadlocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from benchmarks.speed.figures import Storage, TableBytes
from retrieval.types.search import Filters

ROWS_AT_ONCE = 20_000

# Partitions count as their table, partitions of an index as that index.
_RELATIONS = """
    select coalesce(pg_partition_root(t.oid), t.oid)::regclass::text as name,
        sum(pg_relation_size(t.oid) + pg_relation_size(t.oid, 'fsm') + pg_relation_size(t.oid, 'vm')),
        sum(coalesce(pg_total_relation_size(nullif(t.reltoastrelid, 0)), 0))
    from pg_class t
    where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'm') group by 1 order by 1
"""

_INDEXES = """
    select coalesce(pg_partition_root(i.indrelid), i.indrelid)::regclass::text,
        coalesce(pg_partition_root(i.indexrelid), i.indexrelid)::regclass::text, sum(pg_relation_size(i.indexrelid))
    from pg_index i join pg_class t on t.oid = i.indrelid
    where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'm') group by 1, 2 order by 1, 2
"""

_MEMORIES = """
    select coalesce(sum(n), 0), coalesce(sum(n) filter (where n >= %(packed_from)s), 0)
    from (select count(*) as n from memory group by ns) as sizes
"""

_ELIGIBLE = """
    select count(*) from memory where ns = (select ns from namespace where name = %(namespace)s)
        and tags @> %(tags)s::text[] and metadata @> %(metadata)s
        and created_at >= coalesce(%(after)s, '-infinity'::timestamptz)
"""

_VECTORS = """
    select id, embedding from memory where ns = (select ns from namespace where name = %(namespace)s)
"""

_SPEAKERS = """
    select distinct speaker from memory where ns = (select ns from namespace where name = %(namespace)s)
        and speaker is not null
"""

_DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


def measure_storage(url: str, *, packed_from: int) -> Storage:
    """Bytes of every table. Namespaces of at least `packed_from` memories have packed postings."""
    indexes: dict[str, dict[str, int]] = defaultdict(dict)
    with psycopg.connect(url) as conn:
        for table, index, size in conn.execute(_INDEXES).fetchall():
            indexes[table][index] = int(size)
        tables = [
            TableBytes(table=name, heap=int(heap), toast=int(toast), indexes=indexes[name])
            for name, heap, toast in conn.execute(_RELATIONS).fetchall()
        ]
        [counted] = conn.execute(_MEMORIES, {"packed_from": packed_from}).fetchall()
    memories, packed = map(int, counted)
    postings = sum(each.total for each in tables if each.table.startswith("bm25_") and each.table != "bm25_tail")
    return Storage(memories=memories, packed=packed, tables=tables, posting_bytes=postings)


def count_eligible(url: str, namespace: str, filters: Mapping[str, Filters]) -> dict[str, int]:
    """How many memories of the namespace meet each filter of tags, metadata or time, counted without an index."""
    found = {}
    with psycopg.connect(url) as conn:
        for name, wanted in filters.items():
            parameters = {
                "namespace": namespace,
                "tags": wanted.tags_all,
                "metadata": Jsonb(wanted.metadata),
                "after": wanted.created_after,
            }
            [(found[name],)] = conn.execute(_ELIGIBLE, parameters).fetchall()
    return found


def speakers_in(url: str, namespace: str) -> list[str]:
    """The speakers of the namespace's memories."""
    with psycopg.connect(url) as conn:
        return [speaker for (speaker,) in conn.execute(_SPEAKERS, {"namespace": namespace})]


def nearest(
    url: str, namespace: str, vectors: NDArray[np.float32], returned: Sequence[Sequence[str]], count: int
) -> tuple[list[dict[str, float]], NDArray[np.float32]]:
    """By query, the similarities of the returned memories; and that of the `count`th nearest, shape (queries,)."""
    wanted = [set(ids) for ids in returned]
    similarities: list[dict[str, float]] = [{} for _ in returned]
    best = np.full((len(vectors), count), -1.0, np.float32)
    stored = vectors.astype(np.float16).astype(np.float32)
    with psycopg.connect(url) as conn:
        register_vector(conn)
        with conn.cursor(name="vectors", binary=True) as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(_VECTORS, {"namespace": namespace})
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                ids = [row[0] for row in rows]
                matrix = np.stack([np.asarray(row[1].to_numpy(), np.float32) for row in rows])
                found = stored @ matrix.T
                best = -np.partition(-np.hstack([best, found]), count - 1, axis=1)[:, :count]
                for at, memory_id in enumerate(ids):
                    for row, ids_of_query in enumerate(wanted):
                        if memory_id in ids_of_query:
                            similarities[row][memory_id] = float(found[row, at])
    return similarities, best.min(axis=1)


def count_deadlocks(url: str) -> int:
    """All deadlocks of the database so far. A server's are surely counted once it has closed its connections."""
    with psycopg.connect(url, autocommit=True) as conn:
        [(count,)] = conn.execute(_DEADLOCKS).fetchall()
    return int(count)
