"""How close the int8 encoder stays to the float32 one, and how fast both are."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from numpy.typing import NDArray

from retrieval.embedding.encoder import batches_by_length, encode_batch, open_session

_QUERY_RUNS = 1000
_INT8_LIMIT = 127


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Processor time, so that waiting on a busy machine does not count against a model.

    Attributes:
        query_ms: median of one short query on one thread.
        undisturbed_query_ms: the fastest tenth, with least of what neighbours do to the caches.
        documents_per_s: mixed documents per second of one core.
    """

    query_ms: float
    undisturbed_query_ms: float
    documents_per_s: float


def encode_all(model: bytes, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Encode word piece ids on one thread; unit rows in the order of `texts`."""
    session = open_session(model, threads=1)
    vectors = np.empty((len(texts), 384), dtype=np.float32)
    for rows in batches_by_length(texts):
        vectors[rows] = encode_batch(session, [texts[row] for row in rows])
    return vectors


def measure_speed(model: bytes, query: Sequence[int], documents: Sequence[Sequence[int]]) -> Speed:
    """Time a model."""
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


def load_reference(path: Path, texts: Sequence[str]) -> NDArray[np.float32]:
    """Read unit rows written by `save_reference` for the same texts.

    Raises:
        ValueError: the file was written for other texts.
    """
    with np.load(path, allow_pickle=False) as stored:
        if str(stored["texts_sha256"]) != texts_checksum(texts):
            raise ValueError(f"{path} was written for other texts: build it anew")
        vectors: NDArray[np.float32] = stored["steps"] * stored["scale"]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def texts_checksum(texts: Sequence[str]) -> str:
    """Sha256 of the texts, in hexadecimal."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
