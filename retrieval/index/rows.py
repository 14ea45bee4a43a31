"""Everything that an index holds of some memories, in one row: one statement, one snapshot, one round trip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.adjacency import MENTIONS, edges_of
from graph.forward_chaining import StatedRelation
from graph.segments import NarrowEdges
from postgres.arrays import array_text, transposed
from postgres.connection import Connection
from postgres.prepared import PreparedStatement
from retrieval.index.columns import COLUMNS, LINKS, MEMORIES, SHORT_CHARS
from retrieval.index.entity_rows import ALIASES, ALL_KEPT, DESCRIBED, NAMES, Aliases, Entities
from retrieval.store.vectors import StoredVectors

FEW_VECTORS = 500
"""Most vectors read together with changed memories; also most missing ones left to be read by queries on demand."""

_PARTS: LiteralString = (
    " cross join lateral (select " + COLUMNS + ", string_agg(halfvec_send(embedding), '') <few> from ("
    + MEMORIES + "<these> order by doc) as memories) as memories"
    + " cross join lateral (select " + LINKS + ", string_agg(halfvec_send(own), '') <few>"
    + " from turn where ns = %(ns)s <these>) as turns"
    + " cross join lateral (select " + MENTIONS + """ from mention where ns = %(ns)s <these>) as mentions
    cross join lateral (
        select array_agg(source), array_agg(type), array_agg(target), array_agg(doc) from relation
        where ns = %(ns)s <these>
    ) as relations
    cross join lateral (
        select array_agg(entity), array_agg(root) from entity_merge where ns = %(ns)s <if merged>
    ) as merges
    cross join lateral (select """ + NAMES + """ from <kept>) as names
    cross join lateral (""" + ALIASES + " <these>) as aliases"
).replace("%(ns)s", "n.ns")  # fmt: skip

_WIDTHS = (21, 1, 3, 1, 3, 4, 2, 4, 6)
"""Number of columns of each part."""

WIDTH = sum(_WIDTHS)
"""Number of columns of `OF_ALL`."""

OF_ALL: LiteralString = (
    _PARTS.replace("<few>", "").replace("<these>", "").replace("<if merged>", "")
    .replace("<kept>", ALL_KEPT.replace("%(ns)s", "n.ns"))
)  # fmt: skip
"""To be joined to a table `n` with the column `ns`; takes the parameter `short`."""

OF_CHANGED: LiteralString = (
    _PARTS.replace("<few>", "filter (where cardinality(n.changed) <= %(few)s)")
    .replace("<these>", "and doc = any(n.changed)").replace("<if merged>", "and -1 = any(n.changed)")
    .replace("<kept>", DESCRIBED.replace("%(ns)s", "n.ns")) + """ cross join lateral (
        select array_agg(doc), array_agg(terms), array_agg(tfs) from bm25_tail where ns = n.ns and doc = any(n.changed)
    ) as bags"""
)  # fmt: skip
"""The same for the memories with the ordinals `n.changed`; takes the parameters `short`, `few` and `transactions`, the
snapshot since which they changed.

Includes roots and aliases by hand if `ENTITIES` is among the ordinals.
"""

PARAMETERS = {"short": SHORT_CHARS, "few": FEW_VECTORS}

_READ = PreparedStatement(
    "with n as materialized (select %(ns)s::integer as ns, %(changed)s::integer[] as changed) select * from n"
    + OF_CHANGED
)


class MemoryRows(NamedTuple):
    """The data of some memories in the tables.

    Attributes:
        columns, links: input of `Columns.take`.
        vectors: None if there are too many.
        roots: of merged entities; in `OF_CHANGED` only if `ENTITIES` is among the changed.
        names, aliases: input of `EntityNames`.
        bags: by ordinal, the terms and frequencies of memories that are not yet packed; only in `OF_CHANGED`.
    """

    columns: Sequence[Any]
    links: Sequence[Any]
    vectors: StoredVectors | None
    edges: NarrowEdges
    relations: Sequence[StatedRelation]
    roots: dict[int, int]
    names: Entities
    aliases: Aliases
    bags: Mapping[int, tuple[NDArray[np.int64], NDArray[np.uint16]]]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> MemoryRows:
        """Decode the columns of `OF_ALL` or `OF_CHANGED`."""
        sent: Iterator[Any] = iter(row)
        columns, (context,), links, (text,), mentions, relations, merges, names, aliases = (
            list(islice(sent, width)) for width in _WIDTHS
        )
        return cls(
            columns,
            links,
            None if context is None else StoredVectors.from_columns(columns[0], context, links[0], text),
            edges_of(*mentions),
            [StatedRelation(*each) for each in transposed(relations)],
            dict(transposed(merges)),
            Entities.from_columns(*names),
            Aliases.from_columns(*aliases),
            {doc: (np.frombuffer(terms, "<i8"), np.frombuffer(tfs, "<u2")) for doc, terms, tfs in transposed([*sent])},
        )


async def read(conn: Connection, ns: int, changed: Sequence[int], *, since: str | None) -> MemoryRows:
    """Read the memories with some ordinals, and the names that changed since PostgreSQL's snapshot `since`."""
    [row] = await _READ.rows(conn, {"ns": ns, "changed": array_text(changed), "transactions": since, **PARAMETERS})
    return MemoryRows.from_row(row[2:])
