"""The BM25 index alone, for its tests: each memory has a row and postings, nothing for the other legs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from postgres.connection import Connection
from retrieval.index.terms import Postings, TermPostings
from retrieval.store.bm25 import postings
from retrieval.text.analysis import bag

_NAMESPACE = """
    insert into namespace as n (ns, name, next_doc) overriding system value values (%(ns)s, %(ns)s::text, %(docs)s)
    on conflict (ns) do update set next_doc = greatest(n.next_doc, excluded.next_doc)
"""

_MEMORY = """
    insert into memory (
        ns, doc, id, kind, text, created_at, tags, metadata, entities, relations, fingerprint, length, embedding, traits
    )
    select %(ns)s, doc, doc::text, 'text', '', now(), '{}', '{}', '[]', '[]', '', length,
        array_fill(0::real, array[384])::halfvec(384), 0
    from unnest(%(docs)s::int[], %(lengths)s::int[]) as new (doc, length)
"""

_DELETE = "delete from memory where ns = %(ns)s and doc = any(%(docs)s)"

_NO_VECTORS = "drop index memory_embedding"


async def without_vectors(conn: Connection) -> None:
    """Make the rows of many memories cheap: they need no vectors."""
    await conn.execute(_NO_VECTORS)


async def append(conn: Connection, ns: int, texts: Mapping[int, str]) -> None:
    """Add memories by ordinal, in one transaction."""
    bags = {doc: bag(text, None, "simple", title_weight=1) for doc, text in texts.items()}
    async with conn.transaction():
        await conn.execute(_NAMESPACE, {"ns": ns, "docs": 1 + max(bags, default=-1)})
        lengths = [each.length for each in bags.values()]
        await conn.execute(_MEMORY, {"ns": ns, "docs": list(bags), "lengths": lengths})
        await postings.append(conn, ns, bags)


async def remove(conn: Connection, ns: int, docs: Collection[int]) -> None:
    """Delete memories, in one transaction or in the caller's."""
    async with conn.transaction():
        await conn.execute(_DELETE, {"ns": ns, "docs": list(docs)})
        await postings.remove(conn, ns, docs)


async def live_postings(conn: Connection, ns: int, terms: Sequence[int]) -> Postings:
    """The postings of terms in the database, without deleted memories."""
    memories = await (await conn.execute("select doc, length from memory where ns = %s", (ns,))).fetchall()
    lengths: dict[int, int] = dict(memories)
    rows = await (await conn.execute(postings.FETCH_TERMS, {"ns": ns, "terms": list(terms)}, binary=True)).fetchall()
    found = {}
    for term, (docs, tfs) in postings.decode_terms(rows, terms).items():
        there = np.isin(docs, list(lengths))
        if there.any():
            of_docs = np.array([lengths[doc] for doc in docs[there].tolist()], np.int32)
            found[term] = TermPostings(docs[there], tfs[there], of_docs)
    return Postings(found, len(lengths), sum(lengths.values()))
