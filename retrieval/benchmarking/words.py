"""The words that a benchmark's texts are made of: real ones by frequency, made-up rare ones, names."""

from __future__ import annotations

import re
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from retrieval.models_dir import models_dir

RARE_WORDS = 12_000
"""Made-up words behind the real ones, as the identifiers, brands and misspellings of a real collection."""

FUNCTION_WORDS = 120
PEOPLE = 60_000
PLACES = 15_000

# How often a part stands here is how often it is drawn.
_ONSETS = re.findall(r"\w+", "b b br c ch d d dr f g gr h j k l l m m n n p pr r r s s sh st t t th tr v w y z")
_VOWELS = re.findall(r"\w+", "a a a e e e i i o o o u u ai ea ia io ou")
_CODAS = [*[""] * 16, *re.findall(r"\w+", "l m n n r r s t nd rn st x")]
_ENDINGS = re.findall(r"\w+", "ton burg ville ford ham stead mouth bridge dale haven field port")


@cache
def vocabulary() -> tuple[str, ...]:
    """Some thirty thousand words, the most frequent first.

    The first two thirds are the embedder's own whole words, which its tokenizer lists by their frequency in
    English, so that texts of them get embeddings of some sense.
    """
    content = (models_dir() / "embedder.tokenizer.json").read_bytes()
    pieces: dict[str, int] = msgspec.json.decode(content)["model"]["vocab"]
    real = [piece for piece, _ in sorted(pieces.items(), key=lambda item: item[1]) if re.fullmatch("[a-z]{2,}", piece)]
    known = set(real)
    rare = (word for word in _pronounceable(np.random.default_rng(1), 2 * RARE_WORDS, (2, 4)) if word not in known)
    return (*real, *(word for word, _ in zip(rare, range(RARE_WORDS), strict=False)))


@cache
def people() -> tuple[str, ...]:
    """First and last names; who comes first is to be met most often."""
    rng = np.random.default_rng(2)
    first = [word.capitalize() for word in _pronounceable(rng, 2_000, (2, 2))]
    last = [word.capitalize() for word in _pronounceable(rng, 12_000, (2, 3))]
    chosen = zip(rng.integers(len(first), size=2 * PEOPLE), rng.integers(len(last), size=2 * PEOPLE), strict=True)
    return tuple(dict.fromkeys(f"{first[a]} {last[b]}" for a, b in chosen))[:PEOPLE]


@cache
def places() -> tuple[str, ...]:
    """Names of towns."""
    rng = np.random.default_rng(3)
    stems = _pronounceable(rng, PLACES, (1, 2))
    endings = rng.integers(len(_ENDINGS), size=len(stems))
    return tuple(dict.fromkeys(f"{stem}{_ENDINGS[at]}".capitalize() for stem, at in zip(stems, endings, strict=True)))


class Zipf:
    """Ranks from 0 whose frequency falls as 1 / (rank + shift)."""

    def __init__(self, count: int, *, shift: float = 2.7) -> None:
        weights = 1.0 / (np.arange(count) + shift)
        self._cumulated = np.cumsum(weights / weights.sum())

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        """That many ranks, shape (size,)."""
        found = np.searchsorted(self._cumulated, rng.random(size))
        return np.minimum(found, self._cumulated.size - 1)


def _pronounceable(rng: np.random.Generator, count: int, syllables: tuple[int, int]) -> list[str]:
    """Different made-up words."""
    words: dict[str, None] = {}
    while len(words) < count:
        length = int(rng.integers(syllables[0], syllables[1] + 1))
        parts = [
            f"{_ONSETS[rng.integers(len(_ONSETS))]}{_VOWELS[rng.integers(len(_VOWELS))]}"
            f"{_CODAS[rng.integers(len(_CODAS))]}"
            for _ in range(length)
        ]
        words["".join(parts)] = None
    return list(words)
