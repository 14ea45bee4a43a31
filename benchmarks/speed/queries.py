"""Plausible queries about a corpus, all different, so that each one's embedding is computed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np

from benchmarks.speed.corpus import BLOCK, FUNCTION_WORDS, LARGE, Corpus, vocabulary
from retrieval.types.memory import MemoryInput

_NAMED = (
    "What did {name} say about {words}?",
    "When did {name} mention {words}?",
    "How is {name} connected with {words}?",
    "Who told {name} about the {words}?",
    "What does {name} think of {words}?",
)
_UNNAMED = (
    "What do we know about {words}?",
    "Which {words} were discussed?",
    "Why was the {words} changed?",
    "{words}",
    "Tell me about the {words}",
)
_TIMED = ("What happened with {words} in {time}?", "Who mentioned {words} in {time}?")

REMEMBERED_BLOCKS = 64
"""Blocks of the corpus that are cached, so that small corpora are not generated for every query."""


class Queries:
    """An endless supply of queries for the first `memories` of a stream, without repeats."""

    def __init__(self, corpus: Corpus, memories: int, *, seed: int, stream: int = LARGE) -> None:
        self._block = lru_cache(REMEMBERED_BLOCKS)(corpus.block)
        self._memories = memories
        self._stream = stream
        self._rng = np.random.default_rng([corpus.seed, 6, seed, stream])
        self._given: set[str] = set()

    def take(self, count: int) -> list[str]:
        return list(islice(self._fresh(), count))

    def _fresh(self) -> Iterator[str]:
        while True:
            number = int(self._rng.integers(self._memories))
            memory = self._block(self._stream, number // BLOCK)[number % BLOCK]
            text = ask(self._rng, memory)
            if text not in self._given:
                self._given.add(text)
                yield text


def ask(rng: np.random.Generator, memory: MemoryInput) -> str:
    """A question about a memory: some of its words in a phrase, sometimes an unrelated word."""
    common = frozenset(vocabulary()[:FUNCTION_WORDS])
    rare = [word for word in re.findall(r"\b[a-z]{3,}\b", memory.text) if word not in common] or ["something"]
    count = min(len(rare), int(rng.integers(2, 6)))
    words = [rare[at] for at in sorted(rng.choice(len(rare), size=count, replace=False))]
    if rng.random() < 0.3:
        words[int(rng.integers(len(words)))] = vocabulary()[int(rng.integers(FUNCTION_WORDS, 5_000))]
    names = re.findall(r"(?<=[a-z] )[A-Z][a-z]+(?: [A-Z][a-z]+)?", memory.text)
    if memory.speaker is not None:
        names.append(memory.speaker.partition(" ")[0] if rng.random() < 0.5 else memory.speaker)
    kind = rng.random()
    if kind < 0.2:  # a part of the text with gaps, as if from memory
        said = re.findall(r"\w+", memory.text)
        start = int(rng.integers(max(1, len(said) - 9)))
        kept = [word for word in said[start : start + 10] if rng.random() > 0.3]
        return f"Do you remember {' '.join(kept).lower()} {words[0]}?"
    if kind < 0.3 and memory.created_at is not None:
        return _pick(rng, _TIMED).format(words=" ".join(words), time=f"{memory.created_at:%B %Y}")
    if kind < 0.75 and names:
        return _pick(rng, _NAMED).format(name=_pick(rng, names), words=" ".join(words[:3]))
    return _pick(rng, _UNNAMED).format(words=" ".join(words))


def _pick(rng: np.random.Generator, items: Sequence[str]) -> str:
    return items[int(rng.integers(len(items)))]
