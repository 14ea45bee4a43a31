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
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from classifier.cues import CUE_COUNT, cue_numbers
from classifier.skeleton import COUNT_DIM, FUNCTION_WORDS, counts, skeleton

EMBEDDING_DIM: Final = 384
FORM_DIM: Final = 32
LEXICAL: Final = slice(EMBEDDING_DIM, EMBEDDING_DIM + CUE_COUNT + FORM_DIM + COUNT_DIM)
FEATURE_DIM: Final = LEXICAL.stop + 1
BUCKETS: Final = 1 << 17
"""Number of buckets per set of n-grams; bucket 0 means none."""

FEATURES_VERSION: Final = 2
"""Incremented if a change here, in `classifier.cues` or in `classifier.skeleton` alters a training query's features.

Models for another version are rejected.
"""

MAX_WORDS: Final = 96
"""Longer queries are read at both ends, as the question is in the first or the last words."""

_SPELT_WORDS = 32
"""The number of words, half from each end, whose characters are read."""

_LONGEST_SPELT = 40
_SCALE = 0.5
_MAX_CHARS = 4_000
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MARKED = re.compile(r"\w+|[^\w\s]")
_LENGTH_EDGES = (3, 5, 8, 11, 15, 20, 28, 40, 60)
_RELATIVES = frozenset(("who", "which", "whose", "that", "where"))


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
    """Compute the features of a query of any length; only its first and last 2,000 characters and 48 words are read.

    `embedding` is its all-MiniLM-L6-v2 vector of unit length, shape (EMBEDDING_DIM,), or None. Raises ValueError if
    that has another shape or is not finite.
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
    marked = list(map(_encoded, _both_ends(_MARKED.findall(read), MAX_WORDS)))
    roles = list(map(_encoded, ["<", *masked, ">"] if masked else ()))
    spelt = _both_ends(read.split(), _SPELT_WORDS)
    return QueryFeatures(
        row=row,
        words=_buckets(_grams(marked, b" ", 1, 3)),
        characters=np.unique(np.concatenate([_spelling(word[:_LONGEST_SPELT]) for word in spelt or [""]])),
        skeleton=_buckets(_grams(roles, b" ", 2, 4)),
    )


def _read(text: str) -> str:
    if len(text) > _MAX_CHARS:
        text = f"{text[: _MAX_CHARS // 2]} {text[-_MAX_CHARS // 2 :]}"
    read = unicodedata.normalize("NFC", text).strip().replace("’", "'")
    return read.lower() if read.isupper() or _is_title_case(read) else read  # there, capitals do not mark names


def _is_title_case(text: str) -> bool:
    """Whether every word has a capital, even function words: "Who Introduced Marit To Ruben?"."""
    words = text.split()
    if any(word[0].islower() for word in words):
        return False
    return sum(word.istitle() and word.lower() in FUNCTION_WORDS for word in words) >= 2  # "Robert De Niro" has one


def _both_ends(parts: list[str], most: int) -> list[str]:
    return parts if len(parts) <= most else parts[: most // 2] + parts[-most // 2 :]


def check_embedding(embedding: NDArray[np.float32]) -> None:
    """Raise ValueError for an embedding that has another shape or is not finite."""
    if embedding.shape != (EMBEDDING_DIM,):
        raise ValueError(f"embedding must have shape ({EMBEDDING_DIM},), not {embedding.shape}")
    if not np.isfinite(embedding).all():
        raise ValueError("embedding must be finite")


def _form(text: str, words: list[str], masked: list[str]) -> list[int]:
    """Indices of the form features present, in [0, FORM_DIM - 1); the last index is the number of words."""
    names, roles = masked.count("_E") + masked.count("_E'"), " ".join(masked)
    places = [bisect_left(_LENGTH_EDGES, len(words)), 10 + min(names, 4), 15 + min(words.count("of"), 3)]
    flags = (
        "?" in text,
        '"' in text or "“" in text,
        "," in text,
        "_N" in masked,
        any(part[-1] == "'" for part in masked),
        ". " in text or "? " in text or "! " in text,
        re.search("_E'? and _E", roles),
        re.search("_E'? or _E", roles),
        any(word.endswith("ed") for word in words),
        not _RELATIVES.isdisjoint(words[1:]),
        text[:1].islower(),
        not text.isascii(),
    )
    places.extend(place for place, flag in enumerate(flags, 19) if flag)
    return places


def _grams(parts: Sequence[bytes], between: bytes, least: int, most: int) -> Iterator[bytes]:
    """The n-grams of `least` to `most` parts."""
    return (
        between.join(parts[start : start + size])
        for size in range(least, most + 1)
        for start in range(len(parts) - size + 1)
    )


@lru_cache(maxsize=4_096)
def _spelling(word: str) -> NDArray[np.int64]:
    """The buckets of the n-grams of a word's characters; a few hundred bytes, and most words recur in other queries."""
    spelt = _encoded(f" {word} " if word else "")
    return _buckets(_grams([spelt[at : at + 2] for at in range(0, len(spelt), 2)], b"", 2, 5))


def _encoded(text: str) -> bytes:
    """Two bytes per character; four for one beyond the Basic Multilingual Plane, which counts as two."""
    return text.encode("utf-16-le", "surrogatepass")


def _buckets(grams: Iterable[bytes]) -> NDArray[np.int64]:
    """The distinct buckets of some n-grams, ascending."""
    return np.array(sorted({crc32(gram) % (BUCKETS - 1) + 1 for gram in grams}) or [0], np.int64)
