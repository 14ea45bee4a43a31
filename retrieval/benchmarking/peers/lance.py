"""LanceDB: hybrid search with its reranker by reciprocal ranks, embedded in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.benchmarking.peers.base import Documents, Variant

INDEX_FROM = 5_000
"""Documents from which a vector index is made; below, its training has too little to learn from."""


@contextmanager
def opened(documents: Documents, folder: Path, _url: str) -> Iterator[Sequence[Variant]]:
    """A table with a full-text index with LanceDB's defaults and, if it is large, a vector index."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # else each query warns of columns that it does not ask for
    lancedb, arrow = import_module("lancedb"), import_module("pyarrow")
    reranker = import_module("lancedb.rerankers").RRFReranker()
    width = documents.vectors.shape[1]
    rows = arrow.table(
        {
            "id": arrow.array(documents.ids, arrow.string()),
            "text": arrow.array(documents.texts, arrow.string()),
            "vector": arrow.FixedSizeListArray.from_arrays(arrow.array(documents.vectors.ravel()), width),
        }
    )
    table: Any = lancedb.connect(str(folder / "lancedb")).create_table("documents", rows, mode="overwrite")
    table.create_fts_index("text", replace=True)
    indexed = len(documents.ids) >= INDEX_FROM
    if indexed:
        table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")

    def search(text: str, vector: NDArray[np.float32], limit: int, *, exact: bool) -> list[str]:
        query = table.search(query_type="hybrid").vector(vector).text(text).metric("cosine").limit(limit)
        if exact:
            query = query.bypass_vector_index()
        return [row["id"] for row in query.rerank(reranker).select(["id", "text"]).to_list()]

    variants = [
        Variant(
            name="LanceDB hybrid",
            note="full-text index with its defaults, exact vector scan as without an index, RRFReranker",
            search=lambda text, vector, limit: search(text, vector, limit, exact=True),
        )
    ]
    if indexed:
        variants.append(
            Variant(
                name="LanceDB hybrid, IVF_HNSW_SQ",
                note="the same with a vector index of its parameters' defaults",
                search=lambda text, vector, limit: search(text, vector, limit, exact=False),
            )
        )
    yield variants
