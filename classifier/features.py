"""What the intent classifier sees of a query, in training and in serving alike; numpy only.

- a row of numbers: the embedding, cues (`classifier.cues`), the form, the counts of the skeleton, and whether there
  is an embedding;
- three sets of hashed n-grams: of the words and marks as they were written, of the characters within words, and of
  the skeleton (`classifier.skeleton`). The model knows which buckets it has seen and what each of them weighs.

The hash is zlib.crc32: the same on every machine and in every process.
"""

import re
import unicodedata
from collections.abc import Sequence
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
"""Of each set of n-grams; bucket 0 is for none."""

FEATURES_VERSION: Final = 2
"""Raise it with any change here, in `classifier.cues` or in `classifier.skeleton`: a model made for another is
refused."""

MAX_WORDS: Final = 96
"""A longer query is read at both ends: the question stands in the first or the last words."""

_SPELT_WORDS = 32
"""Of so many words, half from each end, the characters are read."""

_LONGEST_SPELT = 40
_CHARACTER_BYTES = 2
_SPELLING_BYTES = tuple(_CHARACTER_BYTES * size for size in (2, 3, 4, 5))
_SCALE = 0.5
_MAX_CHARS = 4_000
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MARKED = re.compile(r"\w+|[^\w\s]")
_LENGTH_EDGES = (3, 5, 8, 11, 15, 20, 28, 40, 60)


class QueryFeatures(NamedTuple):
    """What is known of one query."""

    row: NDArray[np.float32]
    """Shape (FEATURE_DIM,)."""

    words: NDArray[np.int64]
    """Buckets in [1, BUCKETS) of the 1- to 3-grams of words and marks, none twice; [0] for a query without any."""

    characters: NDArray[np.int64]
    """The same of the 2- to 5-grams of characters within words."""

    skeleton: NDArray[np.int64]
    """The same of the 2- to 4-grams of the skeleton."""


def query_features(text: str, embedding: NDArray[np.float32] | None) -> QueryFeatures:
    """Describe one query for the model.

    Args:
        text: the query, of any length; only its first and last 2,000 characters and 48 words are read.
        embedding: its all-MiniLM-L6-v2 vector of unit length, shape (EMBEDDING_DIM,), or None where there is none.

    Returns:
        Its features.

    Raises:
        ValueError: the embedding has another shape or is not finite.
    """
    read = _read(text)
    tokens = _both_ends(_TOKEN.findall(read), MAX_WORDS)
    words = [token.lower() for token in tokens]
    masked = skeleton(tokens, words)
    row = np.zeros(FEATURE_DIM, dtype=np.float32)
    if embedding is not None:
        row[:EMBEDDING_DIM] = _checked(embedding)
        row[-1] = 1.0
    lexical = row[LEXICAL]
    end_form = CUE_COUNT + FORM_DIM
    lexical[CUE_COUNT:end_form] = _SCALE * _form(read, words, masked)
    lexical[[*cue_numbers(words), *(end_form + place for place in counts(masked, words))]] = _SCALE
    return QueryFeatures(
        row=row,
        words=_buckets(_grams(_both_ends(_MARKED.findall(read), MAX_WORDS), (1, 2, 3))),
        characters=_buckets(_spellings(_both_ends(read.split(), _SPELT_WORDS))),
        skeleton=_buckets(_grams(["<", *masked, ">"] if masked else [], (2, 3, 4))),
    )


def _read(text: str) -> str:
    if len(text) > _MAX_CHARS:
        text = f"{text[: _MAX_CHARS // 2]} {text[-_MAX_CHARS // 2 :]}"
    read = unicodedata.normalize("NFC", text).replace("’", "'")
    return read.lower() if read.isupper() else read  # capitals throughout tell no names


def _both_ends(parts: list[str], most: int) -> list[str]:
    return parts if len(parts) <= most else parts[: most // 2] + parts[-most // 2 :]


def _checked(embedding: NDArray[np.float32]) -> NDArray[np.float32]:
    if embedding.shape != (EMBEDDING_DIM,):
        raise ValueError(f"embedding must have shape ({EMBEDDING_DIM},), not {embedding.shape}")
    if not np.isfinite(embedding).all():
        raise ValueError("embedding must be finite")
    return embedding


def _form(text: str, words: list[str], masked: list[str]) -> NDArray[np.float32]:
    row = np.zeros(FORM_DIM, dtype=np.float32)
    row[sum(len(words) > edge for edge in _LENGTH_EDGES)] = 1.0
    names = sum(part.startswith("_E") for part in masked)
    row[10 + min(names, 4)] = 1.0
    row[15 + min(words.count("of"), 3)] = 1.0
    row[19] = "?" in text
    row[20] = '"' in text or "“" in text
    row[21] = "," in text
    row[22] = "_N" in masked
    row[23] = any(part.endswith("'") for part in masked)
    row[24] = text.count(". ") + text.count("? ") + text.count("! ") > 0
    row[25] = _joined(masked, "and")
    row[26] = _joined(masked, "or")
    row[27] = any(word.endswith("ed") for word in words)
    row[28] = sum(word in ("who", "which", "whose", "that", "where") for word in words[1:]) > 0
    row[29] = text[:1].islower()
    row[30] = not text.isascii()
    row[31] = min(len(words), 60) / 60.0
    return row


def _joined(masked: list[str], conjunction: str) -> bool:
    """Say whether two names are joined by the word, as in `_E and _E`."""
    return any(
        word == conjunction and before.startswith("_E") and after.startswith("_E")
        for before, word, after in zip(masked, masked[1:], masked[2:], strict=False)
    )


def _grams(parts: Sequence[str], sizes: tuple[int, ...]) -> set[bytes]:
    encoded = [_encoded(part) for part in parts]
    return {b" ".join(encoded[start : start + size]) for size in sizes for start in range(len(parts) - size + 1)}


def _spellings(words: Sequence[str]) -> set[bytes]:
    padded = [_encoded(f" {word[:_LONGEST_SPELT]} ") for word in words]
    return {
        word[start : start + size]
        for word in padded
        for size in _SPELLING_BYTES
        for start in range(0, len(word) - size + 1, _CHARACTER_BYTES)
    }


def _encoded(text: str) -> bytes:
    """Two bytes per character, so that a slice of bytes is a slice of characters."""
    return text.encode("utf-16-le", "surrogatepass")


def _buckets(grams: set[bytes]) -> NDArray[np.int64]:
    if not grams:
        return np.zeros(1, dtype=np.int64)
    hashed = np.fromiter(map(crc32, grams), dtype=np.int64, count=len(grams)) % (BUCKETS - 1)
    hashed.sort()
    first = np.empty(len(hashed), dtype=np.bool_)
    first[0] = True
    np.not_equal(hashed[1:], hashed[:-1], out=first[1:])
    return 1 + hashed[first]
