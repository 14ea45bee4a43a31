"""What the embedder prepares for a run, kept in the data folder: vectors of words and of the first memories."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from retrieval.benchmarking.corpus import Corpus
from retrieval.benchmarking.topics import embed_words, find_topics
from retrieval.benchmarking.vectors import Vectors, embed, open_embedder
from retrieval.benchmarking.watching import Progress
from retrieval.embedding.onnx import DIMENSIONS

_WORDS, _VECTORS = "bench-words.npy", "bench-vectors.npy"


async def prepare(folder: Path, seed: int, real: int, progress: Progress) -> Corpus:
    """Have the words' and at least `real` memories' embeddings in the folder; what is there is kept."""
    embedder = open_embedder()
    words, vectors = folder / _WORDS, folder / _VECTORS
    if not words.exists():
        with progress("embedding words", None) as advance:
            np.save(words, await embed_words(embedder, advance))
    corpus = load_corpus(folder, seed)
    known = np.load(vectors) if vectors.exists() else np.empty((0, DIMENSIONS), np.float32)
    if len(known) < real:
        with progress("embedding", real - len(known)) as advance:
            np.save(vectors, np.concatenate([known, await embed(embedder, corpus, len(known), real, advance)]))
    await embedder.aclose()
    return corpus


@cache
def load_corpus(folder: Path, seed: int) -> Corpus:
    """The corpus of a folder that has been prepared."""
    return Corpus(seed, find_topics(np.load(folder / _WORDS), seed))


@cache
def load_vectors(folder: Path, seed: int) -> Vectors:
    """The vectors of a folder that has been prepared."""
    return Vectors(load_corpus(folder, seed), np.load(folder / _VECTORS), np.load(folder / _WORDS))
