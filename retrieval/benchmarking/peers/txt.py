"""txtai: hybrid search with content in SQLite and vectors from outside, embedded in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.benchmarking.peers.base import Documents, Variant


@contextmanager
def opened(documents: Documents, _folder: Path, _url: str) -> Iterator[Sequence[Variant]]:
    """An index with txtai's defaults for `hybrid` and `content`; how it fuses is its own."""
    known: dict[str, NDArray[np.float32]] = dict(zip(documents.texts, documents.vectors, strict=True))

    def transform(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([known[text] for text in texts])

    embeddings: Any = import_module("txtai").Embeddings(
        method="external", transform=transform, hybrid=True, content=True
    )
    embeddings.index(zip(documents.ids, documents.texts, [None] * len(documents.ids), strict=True))

    def search(text: str, vector: NDArray[np.float32], limit: int) -> list[str]:
        known[text] = vector
        return [row["id"] for row in embeddings.search(text, limit)]

    yield [Variant(name="txtai hybrid", note="its own sparse index and SQLite content, Faiss", search=search)]
    embeddings.close()
