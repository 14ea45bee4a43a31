"""Loading a small namespace in one statement: its whole index, and the postings of one query's terms.

One statement means one snapshot and one round trip, and leaves nothing to undo if it fails.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import LiteralString

from graph.adjacency import Adjacency
from graph.merges import unified
from postgres.arrays import array_text, transposed
from postgres.connection import Connection
from postgres.prepared import Parameters, PreparedStatement
from retrieval.index import rows
from retrieval.index.columns import SHORT_CHARS, Columns
from retrieval.index.entity_names import EntityNames
from retrieval.index.freshness import FollowedIndex
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.quantized_vectors import QuantizedVectors
from retrieval.index.rows import MemoryRows
from retrieval.index.snapshot import CheckedNamespace
from retrieval.store.bm25 import postings
from retrieval.store.changes import SNAPSHOT, DatabaseSnapshot
from retrieval.store.namespaces import CURRENT, Namespace, settings_of

MOST_ORDINALS = 1_000
"""Most ordinals of a small namespace."""

_NAMESPACE: LiteralString = (
    "select " + CURRENT + ", " + SNAPSHOT + " from namespace where name = %(name)s and next_doc <= %(most)s"
)
_POSTINGS: LiteralString = "select array_agg(term), array_agg(postings) from (" + postings.FETCH_TERMS + ") as fetched"

_READ = PreparedStatement(
    "select * from (" + _NAMESPACE + ") as n" + rows.OF_ALL
    + " cross join lateral (" + _POSTINGS.replace("%(ns)s", "n.ns") + ") as postings"
)  # fmt: skip

_NAMESPACE_WIDTH = 8


async def read(conn: Connection, name: str, terms: Collection[int]) -> tuple[FollowedIndex, CheckedNamespace] | None:
    """Load the index of a namespace with the postings of some terms; None if it does not exist or is not small."""
    asked_at = time.monotonic()
    parameters: Parameters = {"name": name, "most": MOST_ORDINALS, "short": SHORT_CHARS, "terms": array_text(terms)}
    found = await _READ.rows(conn, parameters)
    if not found:
        return None
    current, parts = found[0][:_NAMESPACE_WIDTH], found[0][_NAMESPACE_WIDTH:]
    ns, stored, next_doc, generation, now, *snapshot = current
    read = MemoryRows.from_row(parts[: rows.WIDTH])
    columns = Columns()
    columns.take(read.columns, read.links)
    graph = Adjacency(*unified(read.edges, read.relations, read.roots))
    vectors, names = QuantizedVectors(next_doc), EntityNames()
    names.put(read.names, read.roots.values())
    names.put_aliases(read.aliases, columns.slots)
    index = NamespaceIndex(ns, DatabaseSnapshot(*snapshot), generation, columns, graph, vectors, names, read.roots)
    if read.vectors is not None:
        vectors.put(*read.vectors, version=vectors.version)
    index.terms.put(postings.decode_terms(transposed(parts[rows.WIDTH :]), terms), terms, additions=0)
    namespace = Namespace(ns, name, settings_of(stored), next_doc, generation)
    return FollowedIndex(index, namespace.settings), CheckedNamespace(namespace, index, now, asked_at)
