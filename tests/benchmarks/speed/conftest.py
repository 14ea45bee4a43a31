"""A corpus that takes a second instead of ten."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.speed.vectors import embed_all
from retrieval.embedding.onnx import DIMENSIONS, OnnxEmbedder


@pytest.fixture
def few_are_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In large batches, the eight thousand words, all but the first 200 texts get meaningless vectors."""

    async def embed_first(
        embedder: OnnxEmbedder, texts: Sequence[str], progress: Callable[[int], None]
    ) -> NDArray[np.float32]:
        others = np.random.default_rng(0).standard_normal((len(texts[200:]), DIMENSIONS))
        return np.concatenate([await embed_all(embedder, texts[:200], progress), others.astype(np.float32)])

    monkeypatch.setattr("benchmarks.speed.vectors.embed_all", embed_first)
