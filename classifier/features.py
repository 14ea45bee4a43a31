"""What the intent classifier sees of a query, in training and in serving alike; numpy only.

Lexical features are cues (`classifier.cues`), numbers that describe the form, and hashed n-grams
of the words and of the skeleton, in which names, figures and words of content are masked: "Where
was _E born" is one shape whoever is asked about. The hash is zlib.crc32: the same on every
machine and in every process.

A row holds two views of a query, of which exactly one is filled, so that one linear model has a
head for queries with an embedding and another for queries without:

    [embedding | lexical | 1 | lexical | 1]
     with an embedding ----   without -----
"""

import re
import unicodedata
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from classifier.cues import CUE_COUNT, cue_numbers

EMBEDDING_DIM: Final = 384
FORM_DIM: Final = 32
WORD_BUCKETS: Final = 1024
SHAPE_BUCKETS: Final = 1024
LEXICAL_DIM: Final = CUE_COUNT + FORM_DIM + WORD_BUCKETS + SHAPE_BUCKETS

WITH_EMBEDDING: Final = slice(0, EMBEDDING_DIM + LEXICAL_DIM + 1)
WITHOUT_EMBEDDING: Final = slice(WITH_EMBEDDING.stop, WITH_EMBEDDING.stop + LEXICAL_DIM + 1)
FEATURE_DIM: Final = WITHOUT_EMBEDDING.stop

FEATURES_VERSION: Final = 1
"""Raise it with any change here or in `classifier.cues`: a model made for another is refused."""

MAX_WORDS: Final = 96
"""A longer query is read at both ends: the question stands in the first or the last words."""

_CUE_SCALE = 0.5
_NGRAM_SCALE = 1.5
_MAX_CHARS = 4_000
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LENGTH_EDGES = (3, 5, 8, 11, 15, 20, 28, 40, 60)
_FUNCTION_WORD_LIST = """
    a about after all also an and any are as at be been before between both but by can could did
    do does during each for from get give given good had has have he her his how i if in into is it
    its just list many me more most much my name of on one or other our out over she should so some
    such tell than that the their them then there these they this those through to together under
    up us was we were what when where which who whom whose why will with would you your best first
    same suggest recommend like want need explain describe summary between i'm i've i'd what's
    der die das ein eine ist sind was wer wie wo warum welche und oder von in zu für mit ich mir
    le la les un une est sont que qui où pourquoi quel quelle et ou de du des à pour je me mon
    el los las es son qué quién dónde cuál y o del al para yo mi
    il lo gli è sono che chi dove quale e di per io"""
_FUNCTION_WORDS = frozenset(_FUNCTION_WORD_LIST.split())


def feature_row(text: str, embedding: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """Put one query into the model's input row.

    Args:
        text: the query.
        embedding: its all-MiniLM-L6-v2 vector of unit length, shape (EMBEDDING_DIM,), or None
            where there is none.

    Returns:
        Shape (FEATURE_DIM,).

    Raises:
        ValueError: the embedding has another shape or is not finite.
    """
    row = np.zeros(FEATURE_DIM, dtype=np.float32)
    if embedding is None:
        view = row[WITHOUT_EMBEDDING]
    else:
        if embedding.shape != (EMBEDDING_DIM,):
            raise ValueError(f"embedding must have shape ({EMBEDDING_DIM},), not {embedding.shape}")
        if not np.isfinite(embedding).all():
            raise ValueError("embedding must be finite")
        view = row[WITH_EMBEDDING]
        view[:EMBEDDING_DIM] = embedding
    view[-LEXICAL_DIM - 1 : -1] = lexical_features(text)
    view[-1] = 1.0
    return row


def lexical_features(text: str) -> NDArray[np.float32]:
    """Describe a query by its words alone.

    Args:
        text: the query, of any length; only its first and last 2,000 characters and 48 words
            are read.

    Returns:
        Shape (LEXICAL_DIM,): cues and form in [0, 0.5], then two n-gram blocks of length 1.5
        each, all 0 where the query has no words.
    """
    tokens = _tokens(text)
    words = [token.lower() for token in tokens]
    shape = _shape(tokens, words)
    row = np.zeros(LEXICAL_DIM, dtype=np.float32)
    row[cue_numbers(words)] = _CUE_SCALE
    end_cues = CUE_COUNT + FORM_DIM
    row[CUE_COUNT:end_cues] = _CUE_SCALE * _form(text, words, shape)
    _hash_into(row[end_cues : end_cues + WORD_BUCKETS], words, (1, 2))
    _hash_into(row[end_cues + WORD_BUCKETS :], ["<", *shape, ">"] if shape else [], (2, 3))
    return row


def _tokens(text: str) -> list[str]:
    if len(text) > _MAX_CHARS:
        text = f"{text[: _MAX_CHARS // 2]} {text[-_MAX_CHARS // 2 :]}"
    normalised = unicodedata.normalize("NFC", text).replace("’", "'")
    tokens = _TOKEN.findall(normalised)
    if len(tokens) > MAX_WORDS:
        tokens = tokens[: MAX_WORDS // 2] + tokens[-MAX_WORDS // 2 :]
    return tokens


def _shape(tokens: list[str], words: list[str]) -> list[str]:
    """Mask what the query is about: `_E` a run of names, `_N` a figure, `*` a run of content."""
    shape: list[str] = []
    for position, (token, word) in enumerate(zip(tokens, words, strict=True)):
        if word[0].isdigit():
            part = "_N"
        elif position and token[0].isupper() and word not in ("i", "i'm", "i've", "i'd", "i'll"):
            part = "_E'" if word.endswith("'s") else "_E"
        elif word in _FUNCTION_WORDS:
            part = word
        elif word.endswith("'s"):
            part = "*'"
        else:
            part = "*"
        if part in ("_E", "*") and shape and shape[-1] == part:
            continue
        shape.append(part)
    return shape


def _form(text: str, words: list[str], shape: list[str]) -> NDArray[np.float32]:
    row = np.zeros(FORM_DIM, dtype=np.float32)
    row[sum(len(words) > edge for edge in _LENGTH_EDGES)] = 1.0
    names = sum(part.startswith("_E") for part in shape)
    row[10 + min(names, 4)] = 1.0
    row[15 + min(words.count("of"), 3)] = 1.0
    row[19] = "?" in text
    row[20] = '"' in text or "“" in text
    row[21] = "," in text
    row[22] = "_N" in shape
    row[23] = any(part.endswith("'") for part in shape)
    row[24] = text.count(". ") + text.count("? ") + text.count("! ") > 0
    row[25] = _joined(shape, "and")
    row[26] = _joined(shape, "or")
    row[27] = any(word.endswith("ed") for word in words)
    row[28] = sum(word in ("who", "which", "whose", "that", "where") for word in words[1:]) > 0
    row[29] = text[:1].islower()
    row[30] = not text.isascii()
    row[31] = min(len(words), 60) / 60.0
    return row


def _joined(shape: list[str], conjunction: str) -> bool:
    """Say whether two names are joined by the word, as in `_E and _E`."""
    return any(
        word == conjunction and before.startswith("_E") and after.startswith("_E")
        for before, word, after in zip(shape, shape[1:], shape[2:], strict=False)
    )


def _hash_into(block: NDArray[np.float32], parts: list[str], sizes: tuple[int, ...]) -> None:
    """Set the buckets of the n-grams of `parts` and scale the block to length 1.5, in place."""
    buckets = len(block)
    grams = {
        crc32(" ".join(parts[start : start + size]).encode()) % buckets
        for size in sizes
        for start in range(len(parts) - size + 1)
    }
    if grams:
        block[list(grams)] = _NGRAM_SCALE / np.sqrt(np.float32(len(grams)))
