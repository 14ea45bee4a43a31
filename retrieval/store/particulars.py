"""What the rescorer needs of the memories that it orders."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection

from graph.arrays import array_text

# A turn's own vector is kept beside the one that is mixed with the turns before it.
_READ: LiteralString = """
    select m.doc, m.speaker, m.session_id, m.title, m.traits, case when m.traits is null then m.text end as text,
        -(m.embedding <#> %(embedding)s::halfvec) as mixed,
        case when %(embedding)s::halfvec is not null then halfvec_send(coalesce(t.own, m.embedding)) end as own
    from memory m left join turn t on t.ns = m.ns and t.doc = m.doc
    where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
"""

_HEADER_HALVES = 2
"""A halfvec is sent as its dimensions and two bytes unused, then big-endian half floats."""


class ParticularsRow(NamedTuple):
    """A memory, in the order of the statement's columns; `text` where the traits are not stored."""

    doc: int
    speaker: str | None
    session_id: str | None
    title: str | None
    traits: int | None
    text: str | None
    mixed: float | None
    own: bytes | None


async def read(
    conn: AsyncConnection[Any], ns: int, docs: Collection[int], embedding: NDArray[np.float32] | None
) -> dict[int, ParticularsRow]:
    """The memories of these ordinals; one replaced meanwhile is absent.

    Args:
        conn: any; nothing is written.
        ns: number of the namespace.
        docs: ordinals.
        embedding: the query's; without one `mixed` and `own` are None.
    """
    vector = None if embedding is None else HalfVector(embedding)
    parameters = {"ns": ns, "docs": array_text(docs), "embedding": vector}
    cursor = await conn.execute(_READ, parameters, binary=True)
    return {row[0]: ParticularsRow(*row) for row in await cursor.fetchall()}


def vectors_of(sent: Collection[bytes]) -> NDArray[np.float32]:
    """Vectors as `ParticularsRow.own` has them, shape (n, dimensions)."""
    halves = np.frombuffer(b"".join(sent), dtype=">f2").reshape(len(sent), -1)
    return halves[:, _HEADER_HALVES:].astype(np.float32)
