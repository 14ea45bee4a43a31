"""A small namespace read in one statement: all that a mirror knows, and the postings of one query's terms.

One statement is one snapshot, one wait, and nothing to undo where it fails.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, LiteralString, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from graph.adjacency import MENTIONS, Adjacency, edges_of
from graph.arrays import array_text
from graph.chaining import Stated
from graph.prepared import Parameters, Prepared
from retrieval.mirror.columns import COLUMNS, LINKS, MEMORIES, SHORT_CHARS, Columns
from retrieval.mirror.mirror import Mirror
from retrieval.mirror.quantised import Quantised
from retrieval.store import postings, vectors

MOST_ORDINALS = 1_000
"""Ordinals up to which a namespace is small."""

# The last column is the number of microseconds since 2000.
_NAMESPACE: LiteralString = """
    select ns, settings::text, next_doc, created_at, pg_current_snapshot()::text,
        (extract(epoch from clock_timestamp() - '2000-01-01Z'::timestamptz) * 1000000)::bigint
    from namespace where name = %(name)s and next_doc <= %(most)s
"""
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
_POSTINGS: LiteralString = "select array_agg(term), array_agg(postings) from (" + postings.FETCH_TERMS + ") as fetched"

_BESIDE: LiteralString = " cross join lateral ("
_PARTS: LiteralString = (
    _BESIDE + _MEMORIES + ") as memories"
    + _BESIDE + _TURNS + ") as turns"
    + _BESIDE + _MENTIONS + ") as mentions"
    + _BESIDE + _RELATIONS + ") as relations"
    + _BESIDE + _POSTINGS + ") as postings"
)  # fmt: skip
_READ = Prepared("select * from (" + _NAMESPACE + ") as n" + _PARTS.replace("%(ns)s", "n.ns"))

_WIDTHS = (6, 21, 1, 3, 3, 1, 3, 4, 2)
"""Columns of the answer that belong together."""


class Row(NamedTuple):
    """A namespace's row in the database, its settings as they are stored, and when it was read.

    Attributes:
        snapshot: PostgreSQL's.
        now: microseconds since 2000.
    """

    ns: int
    settings: str
    next_doc: int
    created_at: datetime
    snapshot: str
    now: int


async def read(conn: AsyncConnection[TupleRow], name: str, terms: Collection[int]) -> tuple[Row, Mirror] | None:
    """The mirror of a namespace, with the postings of some terms; None if there is none of that name or it is large."""
    parameters: Parameters = {"name": name, "most": MOST_ORDINALS, "short": SHORT_CHARS, "terms": array_text(terms)}
    rows = await _READ.rows(conn, parameters)
    if not rows:
        return None
    sent = iter(rows[0])
    namespace, memories, (stored,), unread, links, (own,), mentions, relations, found = (
        list(islice(sent, width)) for width in _WIDTHS
    )
    row = Row(*namespace)
    columns = Columns()
    columns.put(memories)
    columns.link(*links)
    columns.read_traits(_transposed(unread))
    graph = Adjacency.of(edges_of(*mentions), [Stated(*relation) for relation in _transposed(relations)])
    mirror = Mirror(row.ns, row.snapshot, columns, graph, Quantised(row.next_doc))
    if columns.count:
        mirror.vectors.put(*vectors.stored(memories[0], stored, links[0], own), version=mirror.vectors.version)
    mirror.terms.put(postings.decode_terms(_transposed(found), terms), terms, additions=0)
    return row, mirror


def _transposed(arrays: Sequence[list[Any] | None]) -> list[tuple[Any, ...]]:
    """Rows, of columns that are all None where there is no row."""
    return list(zip(*(array or () for array in arrays), strict=True))
