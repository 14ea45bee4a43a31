"""Other hybrid searches over the same memories and embeddings; each needs a library that may be missing.

To add one, write a context manager that yields its ways to search, and add it to `PEERS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, LiteralString

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from retrieval.errors import InvalidInput

Vector = NDArray[np.float32]

INDEX_FROM = 5_000
"""Documents from which LanceDB gets a vector index; below, its training has too little to learn from."""

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

# The example of pgvector's documentation, with the words of each text stored rather than computed for each query.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Documents:
    """The texts of one namespace as one string each, and their unit vectors of shape (n, dimensions)."""

    ids: Sequence[str]
    texts: Sequence[str]
    vectors: Vector


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchWay:
    """One way to search a peer's index: from a text, its unit vector and a number of results, to the best ids."""

    name: str
    note: str
    search: Callable[[str, Vector, int], Sequence[str]]


OpenPeer = Callable[[Documents, Path, str], AbstractContextManager[Sequence[SearchWay]]]
"""Indexes documents, as files in a folder or rows in a database; yields the peer's ways to search them."""


@contextmanager
def pgvector(documents: Documents, _folder: Path, url: str) -> Iterator[Sequence[SearchWay]]:
    """The hybrid search that people write by hand: two queries fused by RRF, in Trivet's PostgreSQL server."""
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

        def search(statement: LiteralString, text: str, vector: Vector, limit: int) -> list[str]:
            parameters = {"text": text, "embedding": HalfVector(vector), "limit": limit}
            return [row[0] for row in conn.execute(statement, parameters).fetchall()]

        yield [
            SearchWay(
                name="pgvector + ts_rank_cd, any word",
                note="RRF in SQL over HNSW and a stored tsvector; texts with any of the query's words, "
                "which natural questions need",
                search=partial(search, _ANY_WORD),
            ),
            SearchWay(
                name="pgvector + ts_rank_cd, all words",
                note="the same with plainto_tsquery as in the documentation, which wants all of the query's words",
                search=partial(search, _ALL_WORDS),
            ),
        ]
        conn.execute("drop schema bench_peer cascade")


@contextmanager
def lancedb(documents: Documents, folder: Path, _url: str) -> Iterator[Sequence[SearchWay]]:
    """LanceDB in this process: a full-text index with its defaults and, if the table is large, a vector index."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # else each query warns about columns that it does not select
    library, arrow = import_module("lancedb"), import_module("pyarrow")
    reranker = import_module("lancedb.rerankers").RRFReranker()
    width = documents.vectors.shape[1]
    vectors = arrow.FixedSizeListArray.from_arrays(arrow.array(documents.vectors.ravel()), width)
    ids, texts = (arrow.array(column, arrow.string()) for column in (documents.ids, documents.texts))
    rows = arrow.table({"id": ids, "text": texts, "vector": vectors})
    table: Any = library.connect(str(folder / "lancedb")).create_table("documents", rows, mode="overwrite")
    table.create_fts_index("text", replace=True)
    indexed = len(documents.ids) >= INDEX_FROM
    if indexed:
        table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")

    def search(exact: bool, text: str, vector: Vector, limit: int) -> list[str]:
        query = table.search(query_type="hybrid").vector(vector).text(text).metric("cosine").limit(limit)
        if exact:
            query = query.bypass_vector_index()
        return [row["id"] for row in query.rerank(reranker).select(["id", "text"]).to_list()]

    exactly = "full-text index with its defaults, exact vector scan as without an index, RRFReranker"
    by_index = "the same with a vector index of its parameters' defaults"
    ways = [SearchWay(name="LanceDB hybrid", note=exactly, search=partial(search, True))]
    if indexed:
        ways.append(SearchWay(name="LanceDB hybrid, IVF_HNSW_SQ", note=by_index, search=partial(search, False)))
    yield ways


@contextmanager
def txtai(documents: Documents, _folder: Path, _url: str) -> Iterator[Sequence[SearchWay]]:
    """Txtai in this process: its defaults for `hybrid` and `content`, given vectors, its own fusion."""
    known: dict[str, Vector] = dict(zip(documents.texts, documents.vectors, strict=True))

    def transform(texts: Sequence[str]) -> Vector:
        return np.stack([known[text] for text in texts])

    embeddings: Any = import_module("txtai").Embeddings(
        method="external", transform=transform, hybrid=True, content=True
    )
    embeddings.index(zip(documents.ids, documents.texts, [None] * len(documents.ids), strict=True))

    def search(text: str, vector: Vector, limit: int) -> list[str]:
        known[text] = vector
        return [row["id"] for row in embeddings.search(text, limit)]

    yield [SearchWay(name="txtai hybrid", note="its own sparse index and SQLite content, Faiss", search=search)]
    embeddings.close()


PEERS: Mapping[str, OpenPeer] = {"pgvector": pgvector, "lancedb": lancedb, "txtai": txtai}
"""The context manager of each peer, by the name of its library."""


def is_installed(name: str) -> bool:
    return find_spec(name) is not None


def parse_peers(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of peers, dropping repeats; it may be `all` or `none`.

    Raises:
        InvalidInput: an unknown peer.

    >>> parse_peers("txtai,lancedb")
    ('txtai', 'lancedb')
    """
    if text in ("all", "none"):
        return tuple(PEERS) if text == "all" else ()
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in PEERS:
            raise InvalidInput(f"{name!r} is no peer: use {', '.join(PEERS)}")
    return names
