"""Features of a query for the intent classifier, the same in training and in serving; numpy only.

- a row of numbers: the embedding, cues (`classifier.cues`), the form, the skeleton's counts, and whether there is an
  embedding;
- three sets of hashed n-grams: of words and punctuation as written, of characters within words, and of the skeleton
  (`classifier.skeleton`). The model knows which buckets it has seen and their weights.

The hash is zlib.crc32, which is the same on every machine and in every process.
"""

import re
import unicodedata
from bisect import bisect_left
from codecs import utf_16_le_encode
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from classifier.cues import CUE_COUNT, cue_numbers
from classifier.skeleton import COUNT_DIM, counts, skeleton

EMBEDDING_DIM: Final = 384
FORM_DIM: Final = 32
LEXICAL: Final = slice(EMBEDDING_DIM, EMBEDDING_DIM + CUE_COUNT + FORM_DIM + COUNT_DIM)
FEATURE_DIM: Final = LEXICAL.stop + 1
BUCKETS: Final = 1 << 17
"""Number of buckets per set of n-grams; bucket 0 means none."""

FEATURES_VERSION: Final = 2
"""Incremented with any change here, in `classifier.cues` or in `classifier.skeleton`.

Models for another version are rejected.
"""

MAX_WORDS: Final = 96
"""Longer queries are read at both ends, as the question is in the first or the last words."""

_SPELT_WORDS = 32
"""The number of words, half from each end, whose characters are read."""

_LONGEST_SPELT = 40
_CHARACTER_BYTES = 2
_SPELLING_BYTES = tuple(_CHARACTER_BYTES * size for size in (2, 3, 4, 5))
_SCALE = 0.5
_MAX_CHARS = 4_000
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MARKED = re.compile(r"\w+|[^\w\s]")
_LENGTH_EDGES = (3, 5, 8, 11, 15, 20, 28, 40, 60)
_RELATIVES = frozenset(("who", "which", "whose", "that", "where"))
_NONE: Final = np.zeros(1, dtype=np.int64)
"""The bucket of an empty set of n-grams."""
_NONE.flags.writeable = False


class QueryFeatures(NamedTuple):
    """The features of a query."""

    row: NDArray[np.float32]
    """Shape (FEATURE_DIM,)."""

    words: NDArray[np.int64]
    """Distinct buckets in [1, BUCKETS) of the 1- to 3-grams of words and punctuation; [0] if there are none."""

    characters: NDArray[np.int64]
    """The same for the 2- to 5-grams of characters within words."""

    skeleton: NDArray[np.int64]
    """The same for the 2- to 4-grams of the skeleton."""


def query_features(text: str, embedding: NDArray[np.float32] | None) -> QueryFeatures:
    """Compute the features of a query.

    Args:
        text: the query, of any length; only its first and last 2,000 characters and 48 words are read.
        embedding: its all-MiniLM-L6-v2 vector of unit length, shape (EMBEDDING_DIM,), or None.

    Raises:
        ValueError: the embedding has another shape or is not finite.
    """
    read = _read(text)
    tokens = _both_ends(_TOKEN.findall(read), MAX_WORDS)
    words = [token.lower() for token in tokens]
    masked = skeleton(tokens, words)
    row = np.zeros(FEATURE_DIM, dtype=np.float32)
    if embedding is not None:
        check_embedding(embedding)
        row[:EMBEDDING_DIM] = embedding
        row[-1] = 1.0
    lexical = row[LEXICAL]
    end_form = CUE_COUNT + FORM_DIM
    form = (CUE_COUNT + place for place in _form(read, words, masked))
    joints = (end_form + place for place in counts(masked, words))
    lexical[[*cue_numbers(words), *form, *joints]] = _SCALE
    lexical[end_form - 1] = _SCALE * min(len(words), 60) / 60
    marked = _both_ends(_MARKED.findall(read), MAX_WORDS)
    return QueryFeatures(
        row=row,
        words=_buckets(_hashed_grams(marked, 1, 3)),
        characters=_spellings(_both_ends(read.split(), _SPELT_WORDS)),
        skeleton=_buckets(_hashed_grams(["<", *masked, ">"], 2, 4)) if masked else _NONE,
    )


def _read(text: str) -> str:
    if len(text) > _MAX_CHARS:
        text = f"{text[: _MAX_CHARS // 2]} {text[-_MAX_CHARS // 2 :]}"
    read = unicodedata.normalize("NFC", text).replace("’", "'")
    return read.lower() if read.isupper() else read  # in an all-capitals text, capitals do not mark names


def _both_ends(parts: list[str], most: int) -> list[str]:
    return parts if len(parts) <= most else parts[: most // 2] + parts[-most // 2 :]


def check_embedding(embedding: NDArray[np.float32]) -> None:
    """Validate an embedding.

    Raises:
        ValueError: it has another shape or is not finite.
    """
    if embedding.shape != (EMBEDDING_DIM,):
        raise ValueError(f"embedding must have shape ({EMBEDDING_DIM},), not {embedding.shape}")
    if not np.isfinite(embedding).all():
        raise ValueError("embedding must be finite")


def _form(text: str, words: list[str], masked: list[str]) -> list[int]:
    """Indices of the form features present, in [0, FORM_DIM - 1); the last index is the number of words."""
    names = masked.count("_E") + masked.count("_E'")
    places = [bisect_left(_LENGTH_EDGES, len(words)), 10 + min(names, 4), 15 + min(words.count("of"), 3)]
    flags = (
        "?" in text,
        '"' in text or "“" in text,
        "," in text,
        "_N" in masked,
        any(part[-1] == "'" for part in masked),
        ". " in text or "? " in text or "! " in text,
        names > 1 and _joined(masked, "and"),
        names > 1 and _joined(masked, "or"),
        any(word.endswith("ed") for word in words),
        not _RELATIVES.isdisjoint(words[1:]),
        text[:1].islower(),
        not text.isascii(),
    )
    places.extend(place for place, flag in enumerate(flags, 19) if flag)
    return places


def _joined(masked: list[str], conjunction: str) -> bool:
    """Whether the conjunction joins two names, as in `_E and _E`."""
    return any(
        word == conjunction and before.startswith("_E") and after.startswith("_E")
        for before, word, after in zip(masked, masked[1:], masked[2:], strict=False)
    )


def _hashed_grams(parts: Sequence[str], least: int, most: int) -> list[int]:
    """The hashes of the n-grams of the parts, joined by blanks; each hash extends that of its prefix."""
    encoded = list(map(_encoded, parts))
    hashes = list(map(crc32, encoded))
    found = hashes if least == 1 else []
    following = [b" " + part for part in encoded[1:]]
    for size in range(2, most + 1):
        hashes = list(map(crc32, following[size - 2 :], hashes))
        if size >= least:
            found = found + hashes
    return found


def _spellings(words: Sequence[str]) -> NDArray[np.int64]:
    """The buckets of the character n-grams within the words."""
    return _once(np.concatenate([_spelt(word[:_LONGEST_SPELT]) for word in words])) if words else _NONE


@lru_cache(maxsize=4_096)
def _spelt(word: str) -> NDArray[np.int64]:
    """The same for one word; a few hundred bytes, and most words recur in other queries."""
    padded = _encoded(f" {word} ")
    grams = (
        padded[start : start + size]
        for size in _SPELLING_BYTES
        for start in range(0, len(padded) - size + 1, _CHARACTER_BYTES)
    )
    return _buckets(map(crc32, grams))


def _encoded(text: str) -> bytes:
    """Two bytes per character, so that a slice of the bytes is a slice of the characters."""
    return utf_16_le_encode(text, "surrogatepass")[0]  # `str.encode` looks the codec up on every call


def _buckets(hashes: Iterable[int]) -> NDArray[np.int64]:
    found = np.fromiter(hashes, dtype=np.int64)
    found %= BUCKETS - 1
    found += 1
    return _once(found) if found.size else _NONE


def _once(buckets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Distinct buckets, ascending; several times as fast as `np.unique` for so few."""
    buckets.sort()
    first = np.empty(len(buckets), dtype=np.bool_)
    first[0] = True
    np.not_equal(buckets[1:], buckets[:-1], out=first[1:])
    return buckets[first]
