"""Embeddings of a benchmark's memories: real ones for some, realistic ones for the others.

A million texts take the embedder an hour. The mean of a text's word embeddings accounts for half of the
differences between text embeddings, by a linear map fitted to the real ones. Later texts get the map's result plus a
random residual of the fit. Queries always get the real embedder's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.corpus import LARGE, Corpus, content_words, find_topics
from benchmarks.speed.plan import Progress
from retrieval.embedding.onnx import DIMENSIONS, MODEL_FILE, MODEL_NAME, OnnxEmbedder
from retrieval.ingest.analysis import embedded_text
from retrieval.installation import models_dir
from retrieval.text.word_pieces import TOKENIZER_FILE
from retrieval.types.memory import MemoryInput

_AT_ONCE = 256
_WORDS, _VECTORS = "bench-words.npy", "bench-vectors.npy"


def open_embedder() -> OnnxEmbedder:
    """The bundled embedder on all cores."""
    models = models_dir()
    threads = os.cpu_count() or 1
    return OnnxEmbedder(models / MODEL_FILE, models / TOKENIZER_FILE, document_threads=threads)


async def embed_all(
    embedder: OnnxEmbedder, texts: Sequence[str], progress: Callable[[int], None]
) -> NDArray[np.float32]:
    """The texts' unit vectors, one per row."""
    parts = []
    for start in range(0, len(texts), _AT_ONCE):
        parts.append(await embedder.embed_documents(texts[start : start + _AT_ONCE]))
        progress(len(parts[-1]))
    return np.concatenate(parts)


class CorpusVectors:
    """The vector of any memory of a corpus."""

    def __init__(self, corpus: Corpus, real: NDArray[np.float32], word_vectors: NDArray[np.float32]) -> None:
        """Fit the map: `real` embeddings of the first memories (n, dimensions), `word_vectors` of `content_words()`."""
        self._seed = corpus.seed
        self._real = real
        self._words = word_vectors
        self._places = {word: place for place, word in enumerate(content_words())}
        means = self._means([embedded_text(memory) for memory in corpus.memories(LARGE, 0, len(real))])
        ridge = np.eye(means.shape[1], dtype=np.float32)
        self._map: NDArray[np.float32] = np.linalg.solve(means.T @ means + ridge, means.T @ real)
        self._left_over = real - means @ self._map

    def of(self, stream: int, start: int, memories: Sequence[MemoryInput]) -> NDArray[np.float32]:
        """Unit vectors of a stream's memories from number `start`, shape (len(memories), dimensions)."""
        rng = np.random.default_rng([self._seed, 7, stream, start])
        others = self._left_over[rng.integers(len(self._real), size=len(memories))]
        rows = self._means([embedded_text(memory) for memory in memories]) @ self._map + others
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        if stream == LARGE and start < len(self._real):
            known = self._real[start : start + len(memories)]
            rows[: len(known)] = known
        return rows

    def _means(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The mean vector of each text's words, followed by a 1; shape (len(texts), dimensions + 1)."""
        means = np.ones((len(texts), self._words.shape[1] + 1), np.float32)
        for row, text in enumerate(texts):
            places = [self._places[word] for word in re.findall("[a-z]+", text.lower()) if word in self._places]
            means[row, :-1] = self._words[places].mean(axis=0) if places else 0.0
        return means


class PreparedEmbedder:
    """An `Embedder` that gets the vectors of each batch of documents beforehand."""

    model: str = MODEL_NAME

    def __init__(self) -> None:
        self._prepared: tuple[Sequence[str], NDArray[np.float32]] = ((), np.empty((0, DIMENSIONS), np.float32))

    def prepare(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Set the texts of the next call of `embed_documents` and their vectors, shape (n, 384)."""
        self._prepared = (texts, vectors)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The prepared vectors.

        Raises:
            ValueError: these are not the prepared texts.
        """
        expected, vectors = self._prepared
        pairs = zip(expected, texts, strict=True)
        if not all(given.endswith(text) for text, given in pairs):
            raise ValueError("other texts are embedded than vectors were prepared for")
        return vectors

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        raise NotImplementedError("prepared vectors are of documents")

    def fragment_share(self, _text: str) -> float:
        raise NotImplementedError("prepared vectors are of documents")

    def count_pieces(self, _text: str) -> int:
        raise NotImplementedError("prepared vectors are of texts that need no cutting")

    async def aclose(self) -> None: ...


async def prepare(folder: Path, seed: int, real: int, progress: Progress) -> None:
    """Create the embeddings of the words and of at least `real` memories in the folder; existing ones are kept."""
    embedder = open_embedder()
    words, vectors = folder / _WORDS, folder / _VECTORS
    if not words.exists():
        with progress("embedding words", None) as advance:
            np.save(words, await embed_all(embedder, content_words(), advance))
    known = np.load(vectors) if vectors.exists() else np.empty((0, DIMENSIONS), np.float32)
    if len(known) < real:
        with progress("embedding", real - len(known)) as advance:
            texts = [embedded_text(memory) for memory in load_corpus(folder, seed).memories(LARGE, len(known), real)]
            np.save(vectors, np.concatenate([known, await embed_all(embedder, texts, advance)]))
    await embedder.aclose()


@cache
def load_corpus(folder: Path, seed: int) -> Corpus:
    """The corpus of a prepared folder."""
    return Corpus(seed, find_topics(np.load(folder / _WORDS), seed))


@cache
def load_vectors(folder: Path, seed: int) -> CorpusVectors:
    """The vectors of a prepared folder."""
    return CorpusVectors(load_corpus(folder, seed), np.load(folder / _VECTORS), np.load(folder / _WORDS))
