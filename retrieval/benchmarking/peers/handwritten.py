"""The hybrid search that people write by hand after pgvector's documentation: two queries, joined by RRF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from retrieval.benchmarking.peers.base import Documents, Variant

_CREATE: tuple[LiteralString, ...] = (
    "drop schema if exists bench_peer cascade",
    "create schema bench_peer",
    """
    create table bench_peer.documents (
        id text primary key, content text not null, embedding halfvec(384) not null,
        words tsvector generated always as (to_tsvector('english', content)) stored
    )
    """,
)
_INDEX: tuple[LiteralString, ...] = (
    "set maintenance_work_mem = '1GB'",
    "create index on bench_peer.documents using gin (words)",
    "create index on bench_peer.documents using hnsw (embedding halfvec_cosine_ops)",
    "vacuum analyze bench_peer.documents",
)

# The example of the documentation, with the words of each text stored rather than made anew for each query.
_RRF_HEAD: LiteralString = """
    with semantic_search as (
        select id, rank() over (order by embedding <=> %(embedding)s) as rank from bench_peer.documents
        order by embedding <=> %(embedding)s limit 20
    ),
    keyword_search as (
        select id, rank() over (order by ts_rank_cd(words, query) desc) as rank
        from bench_peer.documents,
"""
_RRF_TAIL: LiteralString = """
        where words @@ query order by ts_rank_cd(words, query) desc limit 20
    ),
    fused as (
        select coalesce(s.id, k.id) as id,
            coalesce(1.0 / (60 + s.rank), 0.0) + coalesce(1.0 / (60 + k.rank), 0.0) as score
        from semantic_search s full outer join keyword_search k on s.id = k.id
    )
    select d.id, d.content, f.score from fused f join bench_peer.documents d on d.id = f.id
    order by f.score desc, d.id limit %(limit)s
"""
_ALL_WORDS: LiteralString = _RRF_HEAD + " plainto_tsquery('english', %(text)s) query " + _RRF_TAIL
_ANY_WORD: LiteralString = (
    _RRF_HEAD + " cast(replace(plainto_tsquery('english', %(text)s)::text, '&', '|') as tsquery) query " + _RRF_TAIL
)


@contextmanager
def opened(documents: Documents, _folder: Path, url: str) -> Iterator[Sequence[Variant]]:
    """The documents in a schema of their own beside Trivet's, in the same server with the same settings."""
    with psycopg.connect(url, autocommit=True) as conn:
        register_vector(conn)
        for statement in _CREATE:
            conn.execute(statement)
        copy_in = "copy bench_peer.documents (id, content, embedding) from stdin with (format binary)"
        with conn.cursor().copy(copy_in) as copy:
            copy.set_types(["text", "text", "halfvec"])
            for row in zip(documents.ids, documents.texts, documents.vectors, strict=True):
                copy.write_row((row[0], row[1], HalfVector(row[2])))
        for statement in _INDEX:
            conn.execute(statement)

        def search(statement: LiteralString, text: str, vector: NDArray[np.float32], limit: int) -> list[str]:
            parameters = {"text": text, "embedding": HalfVector(vector), "limit": limit}
            return [row[0] for row in conn.execute(statement, parameters).fetchall()]

        yield [
            Variant(
                name="pgvector + ts_rank_cd, any word",
                note="RRF in SQL over HNSW and a stored tsvector; texts with any of the query's words, "
                "which natural questions need",
                search=lambda text, vector, limit: search(_ANY_WORD, text, vector, limit),
            ),
            Variant(
                name="pgvector + ts_rank_cd, all words",
                note="the same with plainto_tsquery as in the documentation, which wants all of the query's words",
                search=lambda text, vector, limit: search(_ALL_WORDS, text, vector, limit),
            ),
        ]
        conn.execute("drop schema bench_peer cascade")
