"""What texts are about: topics whose words mean something similar, found by the embedder.

Texts of words drawn at random all get nearly the same embedding, which no index can tell apart; texts about something
spread as those of a real collection do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from retrieval.benchmarking.words import FUNCTION_WORDS, vocabulary
from retrieval.embedding.base import Embedder

TOPICS = 300
TOPIC_WORDS = 200
_CHOICE = 8_000
_AT_ONCE = 500


def content_words() -> tuple[str, ...]:
    """The most frequent words, apart from function words: those that topics are made of."""
    return vocabulary()[FUNCTION_WORDS : FUNCTION_WORDS + _CHOICE]


async def embed_words(embedder: Embedder, progress: Callable[[int], None]) -> NDArray[np.float32]:
    """Their unit vectors, shape (words, dimensions)."""
    words = content_words()
    parts = []
    for start in range(0, len(words), _AT_ONCE):
        parts.append(await embedder.embed_documents(words[start : start + _AT_ONCE]))
        progress(len(parts[-1]))
    return np.concatenate(parts)


def find_topics(word_vectors: NDArray[np.float32], seed: int) -> NDArray[np.int64]:
    """Words by topic, as their places in `vocabulary()`, shape (TOPICS, TOPIC_WORDS), the topic's own first."""
    centres = np.random.default_rng([seed, 4]).choice(len(word_vectors), TOPICS, replace=False)
    near = np.argsort(-(word_vectors[centres] @ word_vectors.T), axis=1, kind="stable")
    return near[:, :TOPIC_WORDS] + FUNCTION_WORDS
