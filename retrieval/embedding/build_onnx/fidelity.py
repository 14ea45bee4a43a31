"""Accuracy of the int8 encoder relative to float32, and the speed of both."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.encoder import batches_by_length, encode_batch, open_session
from retrieval.embedding.onnx import DIMENSIONS

_QUERY_RUNS = 1000
_INT8_LIMIT = 127


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Speed in CPU time, so that waiting on a busy machine does not count.

    Attributes:
        query_ms: median of one short query on one thread.
        undisturbed_query_ms: fastest tenth, least affected by other processes' use of the caches.
        documents_per_s: mixed documents per second on one core.
    """

    query_ms: float
    undisturbed_query_ms: float
    documents_per_s: float


def encode_all(model: bytes, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Encode word piece ids on one thread; unit rows in the order of `texts`."""
    session = open_session(model, threads=1)
    vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
    for rows in batches_by_length(texts):
        vectors[rows] = encode_batch(session, [texts[row] for row in rows])
    return vectors


def measure_speed(model: bytes, query: Sequence[int], documents: Sequence[Sequence[int]]) -> Speed:
    """Measure a model's speed."""
    session = open_session(model, threads=1)
    query_s = []
    for _ in range(_QUERY_RUNS):
        start = time.process_time()
        encode_batch(session, [query])
        query_s.append(time.process_time() - start)
    start = time.process_time()
    for rows in batches_by_length(documents):
        encode_batch(session, [documents[row] for row in rows])
    documents_s = time.process_time() - start
    return Speed(
        query_ms=1000 * median(query_s),
        undisturbed_query_ms=1000 * quantiles(query_s, n=10)[0],
        documents_per_s=len(documents) / documents_s,
    )


def save_reference(path: Path, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Store float32 vectors as int8 steps and a scale per row (cosine to the original > 0.9999)."""
    scale = np.abs(vectors).max(axis=1, keepdims=True) / np.float32(_INT8_LIMIT)
    steps = np.rint(vectors / scale).astype(np.int8)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, steps=steps, scale=scale, texts_sha256=np.array(texts_checksum(texts)))


def texts_checksum(texts: Sequence[str]) -> str:
    """SHA-256 of the texts, in hexadecimal."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
