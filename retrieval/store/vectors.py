"""Stored vectors of memories that were found."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import AsyncConnection

from graph.arrays import array_text

# One row, as bytes that numpy reads: decoding a vector at a time takes several times as long. A turn's own vector is
# kept beside the one that is mixed with the turns before it.
_READ: LiteralString = """
    select string_agg(int4send(m.doc), ''), string_agg(halfvec_send(m.embedding), ''),
        string_agg(int4send(t.doc), ''), string_agg(halfvec_send(t.own), '')
    from memory m left join turn t on t.ns = m.ns and t.doc = m.doc
    where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
"""

_HEADER_HALVES = 2
"""A halfvec is sent as its dimensions and two bytes unused, then big-endian half floats."""


class Stored(NamedTuple):
    """Vectors as they are stored, unit length, float32 of shape (n, dimensions).

    Attributes:
        docs: ordinals.
        vectors: by which these memories are found.
        turns: ordinals of those of them that are turns.
        own: of the turns' own texts, without those before them.
    """

    docs: NDArray[np.int64]
    vectors: NDArray[np.float32]
    turns: NDArray[np.int64]
    own: NDArray[np.float32]


async def read(conn: AsyncConnection[Any], ns: int, docs: Collection[int]) -> Stored:
    """The vectors of some memories, in any order; one deleted meanwhile is absent."""
    row = await (await conn.execute(_READ, {"ns": ns, "docs": array_text(docs)}, binary=True)).fetchone()
    if row is None:
        raise RuntimeError("an aggregate without groups gave no row")
    return stored(*row)


def stored(docs: bytes | None, vectors: bytes | None, turns: bytes | None, own: bytes | None) -> Stored:
    """Vectors as PostgreSQL sends them."""
    return Stored(_ordinals(docs), _vectors(vectors), _ordinals(turns), _vectors(own))


def _ordinals(sent: bytes | None) -> NDArray[np.int64]:
    return np.frombuffer(sent or b"", ">i4").astype(np.int64)


def _vectors(sent: bytes | None) -> NDArray[np.float32]:
    if sent is None:
        return np.empty((0, 0), np.float32)
    width = _HEADER_HALVES + int.from_bytes(sent[:2], "big")
    return np.frombuffer(sent, ">f2").reshape(-1, width)[:, _HEADER_HALVES:].astype(np.float32)
