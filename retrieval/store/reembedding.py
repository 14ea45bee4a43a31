"""New vectors for all memories of a namespace: collected beside the old ones, then swapped in at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from postgres.arrays import array_text
from postgres.connection import Connection, fetch
from retrieval.store import namespaces
from retrieval.store.namespaces import ALLOW_LONG_STATEMENTS
from retrieval.store.sessions import BEFORE_PREVIOUS_SHARE, DOCUMENT, PREVIOUS_SHARE
from retrieval.types.memory import MemoryInput
from retrieval.types.namespace import EmbedderName

# A changed memory has a new ordinal, so memories written since are missing, too.
_MISSING = """
    select m.doc, m.text, m.title, m.speaker from memory m
    where m.ns = %(ns)s and m.doc > %(after)s and not exists (
        select from new_embedding n where n.ns = m.ns and n.doc = m.doc and n.model = %(model)s
    )
    order by m.doc limit %(limit)s
"""

_COUNT = """
    select count(*), count(n.doc) from memory m
        left join new_embedding n on n.ns = m.ns and n.doc = m.doc and n.model = %(model)s
    where m.ns = %(ns)s
"""

# The lock keeps a memory from being deleted without its new vector. Rows locked by writers are skipped, as waiting for
# them in no fixed order could deadlock; they stay missing.
_ADD = """
    insert into new_embedding (ns, doc, model, embedding)
    select m.ns, m.doc, %(model)s, new.embedding
    from memory m join unnest(%(docs)s::integer[], %(embeddings)b::halfvec[]) as new (doc, embedding) on new.doc = m.doc
    where m.ns = %(ns)s and m.doc = any(%(docs)s::integer[])
    for key share of m skip locked
    on conflict (ns, doc) do update set model = excluded.model, embedding = excluded.embedding
"""

_REPLACE_OWN = """
    update turn t set own = n.embedding from new_embedding n where t.ns = %(ns)s and n.ns = t.ns and n.doc = t.doc
"""

# Does the same as `context_embedding` of store/sessions.py; the turns already have their new vectors.
_REPLACE: LiteralString = """
    update memory m set indexed = false, embedding = case when p.doc is null then n.embedding else l2_normalize(
        n.embedding::vector + p.own::vector * array_fill(%(previous)s::real, array[384])::vector
        + coalesce(b.own::vector, array_fill(0::real, array[384])::vector)
            * array_fill(%(before_previous)s::real, array[384])::vector
    )::halfvec(384) end
    from new_embedding n
        left join turn t on t.ns = n.ns and t.doc = n.doc and not starts_with(t.session_id, %(document)s)
        left join turn p on p.ns = t.ns and p.doc = t.previous
        left join turn b on b.ns = p.ns and b.doc = p.previous
    where m.ns = %(ns)s and n.ns = m.ns and n.doc = m.doc
"""

_FORGET = "delete from new_embedding where ns = %(ns)s"

_CHANGE = """
    update namespace set generation = generation + 1,
        settings = jsonb_set(settings, '{embedder}', to_jsonb(%(embedder)s::text))
    where ns = %(ns)s
"""


async def missing(conn: Connection, ns: int, model: str, *, after: int = -1, limit: int) -> dict[int, MemoryInput]:
    """The input to embed for the first memories above the ordinal `after` that lack a new vector of this model."""
    rows = await fetch(conn, _MISSING, {"ns": ns, "model": model, "after": after, "limit": limit})
    return {doc: MemoryInput(text=text, title=title, speaker=speaker) for doc, text, title, speaker in rows}


async def count(conn: Connection, ns: int, model: str) -> tuple[int, int]:
    """The number of memories, and of those with a new vector of this model."""
    [row] = await fetch(conn, _COUNT, {"ns": ns, "model": model})
    return row[0], row[1]


async def add(conn: Connection, ns: int, model: str, docs: Collection[int], embeddings: NDArray[np.float32]) -> None:
    """Store new unit vectors of memories' own texts, except for memories that are being changed.

    `conn` is in a transaction that holds the namespace.
    """
    stored = [HalfVector(embedding) for embedding in embeddings]
    await conn.execute(_ADD, {"ns": ns, "model": model, "docs": array_text(docs), "embeddings": stored})


async def lock(conn: Connection, ns: int) -> None:
    """Wait for the namespace's writers and keep new ones out until the transaction ends."""
    await conn.execute(ALLOW_LONG_STATEMENTS)
    await namespaces.lock(conn, ns, "update")


async def replace(conn: Connection, ns: int, embedder: EmbedderName) -> int:
    """Replace all vectors with the new ones, of which none may be missing; returns how many.

    `conn` is in the transaction that holds `lock`.
    """
    await conn.execute(_REPLACE_OWN, {"ns": ns})
    shares = {"previous": PREVIOUS_SHARE, "before_previous": BEFORE_PREVIOUS_SHARE, "document": DOCUMENT}
    replaced = (await conn.execute(_REPLACE, {"ns": ns, **shares})).rowcount
    await conn.execute(_FORGET, {"ns": ns})
    await conn.execute(_CHANGE, {"ns": ns, "embedder": embedder})
    return replaced
