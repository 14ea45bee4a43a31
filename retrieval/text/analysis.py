"""From text to BM25 terms; memories and queries are analysed alike.

NFKC, case folding, words and identifiers (`words`), bigrams for scripts without spaces (`characters`), stems and stop
words of the language (`languages`), folded diacritics (`characters`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from graph.names import RUN
from retrieval.text.characters import bigrams, fold, han_characters, prepare
from retrieval.text.languages import AUTO, LANGUAGES, SIMPLE, resolve_language, term_of
from retrieval.text.words import chunks, split

__all__ = ["AUTO", "LANGUAGES", "MAX_COUNT", "SIMPLE", "TermBag", "analyze", "bag", "resolve_language", "term_id"]

_LONGEST_CACHED = 64

_ACRONYMS_TOO = frozenset({"IT", "WHO"})
"""English stop words that are names when written like this."""

MAX_COUNT = 65_535
"""Term frequencies are stored in 16 bits and clipped here, far above where BM25 saturates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TermBag:
    """The terms of one memory.

    Attributes:
        terms: int64 (n,), ascending, unique.
        tfs: uint16 (n,), frequencies including the title's weight, clipped at `MAX_COUNT`.
        length: number of terms with repetitions, including the title's weight.
    """

    terms: NDArray[np.int64]
    tfs: NDArray[np.uint16]
    length: int


def analyze(text: str, language: str = SIMPLE) -> list[str]:
    """The terms of a text in document order, with repetitions.

    Stop words are dropped unless nothing else remains, but not "IT" and "WHO" in capitals; emoji are terms only if the
    text has nothing else. Lone surrogates and control characters are separators. `language` is a name or ISO code of
    `LANGUAGES`; raises InvalidInput if it is unknown.

    >>> analyze("Caroline's support groups, re-opened in Zürich!", "english")
    ['carolin', 'support', 'group', 'reopen', 're', 'open', 'zurich']
    >>> analyze("我爱北京 café")
    ['我爱', '爱北', '北京', 'cafe']
    """
    name = language if language in LANGUAGES else resolve_language(language)
    prepared = prepare(text)
    stops = LANGUAGES[name].stops
    terms: list[str] = []
    stopped: list[str] = []
    for chunk in chunks(prepared):
        if chunk.isascii():
            _add(chunk, name, stops, terms, stopped)
        else:
            for piece_number, piece in enumerate(RUN.split(chunk)):
                if piece_number % 2:
                    terms += bigrams(piece)
                elif piece:
                    _add(piece, name, stops, terms, stopped)
    return terms or stopped or [character for character in prepared if unicodedata.category(character) == "So"]


def _add(chunk: str, name: str, stops: frozenset[str], terms: list[str], stopped: list[str]) -> None:
    for word in split(chunk):
        term = term_of(word, name)
        if stops and fold(word) in stops and chunk not in _ACRONYMS_TOO:
            stopped.append(term)
        elif term:
            terms.append(term)


def term_id(term: str) -> int:
    """The signed 64-bit hash that represents a term in the database: BLAKE2b, little-endian.

    Stable across processes and versions. Among 10 million terms a collision has a probability of about 3e-6.
    """
    return _cached_id(term) if len(term) <= _LONGEST_CACHED else _hashed(term)


def term_ids(terms: Sequence[str]) -> NDArray[np.int64]:
    """The ids of some terms, shape (n,), not cached."""
    return np.frombuffer(b"".join([_digest(term) for term in terms]), "<i8")


def _hashed(term: str) -> int:
    return int.from_bytes(_digest(term), "little", signed=True)


def _digest(term: str) -> bytes:
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()


_cached_id = lru_cache(maxsize=32_768)(_hashed)


def bag(text: str, title: str | None, language: str, *, title_weight: int) -> TermBag:
    """The terms of a memory with their frequencies; a term of the title counts `title_weight` times.

    Single Han characters, added so that a query of one finds texts that have it within a run, add no length. Raises
    InvalidInput for an unknown language, ValueError for a negative title weight.

    >>> memory = bag("a support group", "Support", "simple", title_weight=3)
    >>> memory.length, sorted(memory.tfs.tolist())
    (6, [1, 1, 4])
    """
    if title_weight < 0:
        raise ValueError(f"title_weight is {title_weight}, must not be negative")
    title = title if title and title_weight else ""
    counts = Counter(analyze(text, language))
    if title:
        for term, count in Counter(analyze(title, language)).items():
            counts[term] += count * title_weight
    length = sum(counts.values())
    counts.update(han_characters(prepare(f"{title} {text}")) - counts.keys())
    terms = np.fromiter(map(term_id, counts), dtype=np.int64, count=len(counts))
    tfs = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    order = np.argsort(terms)
    return TermBag(
        terms=terms[order],
        tfs=np.minimum(tfs[order], MAX_COUNT).astype(np.uint16),
        length=length,
    )
