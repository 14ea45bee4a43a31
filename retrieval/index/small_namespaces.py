"""Loading a small namespace in one statement: its whole index, and the postings of one query's terms.

One statement means one snapshot and one round trip, and leaves nothing to undo if it fails.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, LiteralString

import msgspec
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from graph.adjacency import MENTIONS, Adjacency, edges_of
from graph.forward_chaining import Stated
from graph.merges import unified
from postgres.arrays import array_text
from postgres.prepared import Parameters, PreparedStatement
from retrieval.index.columns import COLUMNS, LINKS, MEMORIES, SHORT_CHARS, Columns
from retrieval.index.namespace_index import NamespaceIndex
from retrieval.index.quantized_vectors import QuantizedVectors
from retrieval.store import vectors
from retrieval.store.bm25 import postings
from retrieval.store.changes import SNAPSHOT, DatabaseSnapshot
from retrieval.store.namespaces import CURRENT, Namespace
from retrieval.types.namespace import NamespaceSettings

MOST_ORDINALS = 1_000
"""Most ordinals of a small namespace."""

_NAMESPACE: LiteralString = (
    "select " + CURRENT + ", " + SNAPSHOT + " from namespace where name = %(name)s and next_doc <= %(most)s"
)
_MEMORIES: LiteralString = (
    "select "
    + COLUMNS
    + """,
        string_agg(halfvec_send(embedding), ''),
        array_agg(doc) filter (where traits is null), array_agg(text) filter (where traits is null),
        array_agg(speaker) filter (where traits is null)
    from ("""
    + MEMORIES
    + "order by doc) as memories"
)
_TURNS: LiteralString = "select " + LINKS + ", string_agg(halfvec_send(own), '') from turn where ns = %(ns)s"
_MENTIONS: LiteralString = "select " + MENTIONS + " from mention where ns = %(ns)s"
_RELATIONS: LiteralString = """
    select array_agg(source), array_agg(type), array_agg(target), array_agg(doc) from relation where ns = %(ns)s
"""
_MERGES: LiteralString = "select array_agg(entity), array_agg(root) from entity_merge where ns = %(ns)s"
_POSTINGS: LiteralString = "select array_agg(term), array_agg(postings) from (" + postings.FETCH_TERMS + ") as fetched"

_JOIN: LiteralString = " cross join lateral ("
_PARTS: LiteralString = (
    _JOIN + _MEMORIES + ") as memories"
    + _JOIN + _TURNS + ") as turns"
    + _JOIN + _MENTIONS + ") as mentions"
    + _JOIN + _RELATIONS + ") as relations"
    + _JOIN + _MERGES + ") as merges"
    + _JOIN + _POSTINGS + ") as postings"
)  # fmt: skip
_READ = PreparedStatement("select * from (" + _NAMESPACE + ") as n" + _PARTS.replace("%(ns)s", "n.ns"))

_WIDTHS = (9, 21, 1, 3, 3, 1, 3, 4, 2, 2)
"""How many consecutive columns of the result belong together."""


@dataclass(frozen=True, slots=True)
class SmallNamespace:
    """A namespace with its settings as stored too, its index, and when it was read, in microseconds since 2000."""

    namespace: Namespace
    stored_settings: str
    index: NamespaceIndex
    now: int


async def read(conn: AsyncConnection[TupleRow], name: str, terms: Collection[int]) -> SmallNamespace | None:
    """Load the index of a namespace with the postings of some terms; None if it does not exist or is not small."""
    parameters: Parameters = {"name": name, "most": MOST_ORDINALS, "short": SHORT_CHARS, "terms": array_text(terms)}
    rows = await _READ.rows(conn, parameters)
    if not rows:
        return None
    sent = iter(rows[0])
    namespace, memories, (stored,), unread, links, (own,), mentions, relations, merges, found = (
        list(islice(sent, width)) for width in _WIDTHS
    )
    ns, settings, next_doc, created_at, generation, now, *snapshot = namespace
    columns = Columns()
    columns.put(memories)
    columns.link(*links)
    columns.read_traits(_transposed(unread))
    roots = dict(_transposed(merges))
    graph = Adjacency(*unified(edges_of(*mentions), [Stated(*each) for each in _transposed(relations)], roots))
    vectors_of_index = QuantizedVectors(next_doc)
    index = NamespaceIndex(ns, DatabaseSnapshot(*snapshot), generation, columns, graph, vectors_of_index, roots)
    if columns.count:
        index.vectors.put(*vectors.stored(memories[0], stored, links[0], own), version=index.vectors.version)
    index.terms.put(postings.decode_terms(_transposed(found), terms), terms, additions=0)
    decoded = msgspec.json.decode(settings, type=NamespaceSettings)
    return SmallNamespace(Namespace(ns, name, decoded, next_doc, created_at, generation), settings, index, now)


def _transposed(arrays: Sequence[list[Any] | None]) -> list[tuple[Any, ...]]:
    """Rows from columns; the columns are all None if there are no rows."""
    return list(zip(*(array or () for array in arrays), strict=True))
