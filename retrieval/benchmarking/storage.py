"""What the database takes, by table and index."""

from __future__ import annotations

from collections import defaultdict

import psycopg

from retrieval.benchmarking.figures import Storage, TableBytes

# Partitions count as their table, partitioned indexes as the one that they are of.
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


def measure_storage(url: str, *, packed_from: int) -> Storage:
    """Bytes of every table. Namespaces of `packed_from` memories and more have packed postings."""
    indexes: dict[str, dict[str, int]] = defaultdict(dict)
    with psycopg.connect(url) as conn:
        for table, index, size in conn.execute(_INDEXES).fetchall():
            indexes[table][index] = int(size)
        tables = [
            TableBytes(table=name, heap=int(heap), toast=int(toast), indexes=indexes[name])
            for name, heap, toast in conn.execute(_RELATIONS).fetchall()
        ]
        counted = conn.execute(_MEMORIES, {"packed_from": packed_from}).fetchone()
    memories, packed = (int(value) for value in counted) if counted else (0, 0)
    postings = sum(each.total for each in tables if each.table.startswith("bm25_") and each.table != "bm25_tail")
    return Storage(memories=memories, packed=packed, tables=tables, posting_bytes=postings)
