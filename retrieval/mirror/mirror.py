"""One namespace as a server process knows it: all but texts and vectors, exact as of a snapshot of the database."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, LiteralString

import msgspec
import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.adjacency import Adjacency, read_edges
from graph.arrays import array_text
from retrieval.mirror import columns
from retrieval.mirror.columns import Columns
from retrieval.mirror.quantised import Quantised
from retrieval.mirror.terms import TermCache

ORDINALS_AT_ONCE = 5_000
"""Ordinals whose memories, or as many memories' edges, one statement reads while a mirror is made."""

_METADATA_KEPT = 16

_SNAPSHOT: LiteralString = "select pg_current_snapshot()::text, next_doc from namespace where ns = %(ns)s"

_BAGS: LiteralString = (
    "select doc, terms, tfs from bm25_tail where ns = %(ns)s and doc = any(%(docs)s::integer[]) order by doc"
)


@dataclass(slots=True)
class Mirror:
    """What is known of a namespace.

    Attributes:
        ns: its number.
        snapshot: PostgreSQL's, as of which it is exact.
        memories: what is known of each.
        graph: who mentions whom.
        terms: postings of terms that were asked for.
        vectors: those that have been read.
        changed: memories that came, went or were altered since it was made.
        serial: no other mirror of the process has it.
    """

    ns: int
    snapshot: str
    memories: Columns
    graph: Adjacency
    vectors: Quantised
    terms: TermCache = field(init=False)
    changed: int = 0
    serial: int = field(default_factory=count().__next__)
    _with_metadata: OrderedDict[bytes, tuple[int, NDArray[np.int64]]] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.terms = TermCache(self.memories)

    @property
    def nbytes(self) -> int:
        """Memory that it takes, about."""
        return self.memories.nbytes + self.graph.nbytes + self.terms.nbytes + self.vectors.nbytes

    def with_metadata(self, metadata: Mapping[str, Any]) -> NDArray[np.int64] | None:
        """The memories that have these metadata, if that was asked since the last change."""
        changed, docs = self._with_metadata.get(_key(metadata), (-1, None))
        return docs if changed == self.changed else None

    def keep_metadata(self, metadata: Mapping[str, Any], docs: NDArray[np.int64], *, changed: int) -> None:
        """Remember what the database answered when so much had changed."""
        self._with_metadata[_key(metadata)] = changed, docs
        if len(self._with_metadata) > _METADATA_KEPT:
            self._with_metadata.popitem(last=False)

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that it is better made anew."""
        return self.changed > self.most_followed

    @property
    def most_followed(self) -> int:
        """Changes that it takes in before it is better made anew."""
        return 2_000 + self.memories.count // 4


def _key(metadata: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(metadata, order="deterministic")


async def read(conn: AsyncConnection[Any], ns: int) -> Mirror | None:
    """Read a namespace in one snapshot; None if there is none of that number."""
    async with conn.transaction():
        await conn.execute("set transaction isolation level repeatable read, read only")
        found = await (await conn.execute(_SNAPSHOT, {"ns": ns})).fetchone()
        if found is None:
            return None
        snapshot, next_doc = found
        memories = Columns()
        for first in range(0, next_doc, ORDINALS_AT_ONCE):
            await columns.read_range(conn, ns, memories, first=first, end=first + ORDINALS_AT_ONCE)
        edges, relations = await read_edges(conn, ns, parts=1 + next_doc // ORDINALS_AT_ONCE)
        graph = await asyncio.to_thread(Adjacency.of, edges, relations)
        return Mirror(ns, snapshot, memories, graph, Quantised(next_doc))


async def follow(conn: AsyncConnection[Any], mirror: Mirror, docs: Sequence[int], snapshot: str) -> None:
    """Bring a mirror up to date.

    Args:
        conn: in autocommit mode: each statement reads what is there by then, and what changed after `snapshot` is
            read again next time.
        mirror: of the same namespace.
        docs: memories that transactions added, removed or altered that are visible in `snapshot` and were not in the
            mirror's own.
        snapshot: PostgreSQL's.
    """
    memories = mirror.memories
    new = [doc for doc in docs if doc >= len(memories.alive.values) or not memories.alive[doc]]
    there = set((await columns.read_some(conn, mirror.ns, memories, docs)).tolist())
    came = [doc for doc in new if doc in there]
    if came:
        mirror.graph.add(*await read_edges(conn, mirror.ns, came), came)
        bags = await (await conn.execute(_BAGS, {"ns": mirror.ns, "docs": array_text(came)}, binary=True)).fetchall()
        if len(bags) == len(came):
            mirror.terms.add(
                [doc for doc, _, _ in bags],
                [np.frombuffer(terms, "<i8") for _, terms, _ in bags],
                [np.frombuffer(tfs, "<u2") for _, _, tfs in bags],
            )
        else:  # packed by now, or gone again
            mirror.terms.forget()
    went = [doc for doc in docs if doc not in there]
    if went:
        memories.remove(went)
        mirror.graph.remove(went)
        mirror.terms.removed()
    mirror.vectors.forget(np.array(docs, np.int64))
    mirror.changed += len(docs)
    mirror.snapshot = snapshot
