"""Traits of a memory and of a query, from a few surface features.

For English; in other languages only digits and question marks are recognised, and the rescorer, which is trained on
such data too, relies on other evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

import native

MEMORY_TRAITS: Final = (
    *("asks", "asked", "digit", "year", "date", "first_person", "liking", "capitals", "you", "symbols"),
)
"""Traits of a memory's text, each in [0, 1]: whether it ends with a question, contains a question, a digit, a year, a
word of time; how much it uses the first person, and speaks of likes and dislikes; how many capitalised words it has;
whether it addresses somebody; the density of symbols, as in program code.
"""

QUERY_TRAITS: Final = (
    *("when", "where", "who", "how_many", "how_much", "how_long", "how", "why", "what", "which"),
    *("supposing", "suggesting", "digit", "words", "question_mark", "first_person"),
)
"""Traits of a query: its question words and its form."""

_WORD = re.compile(r"\w+")
_FIRST_PERSON = frozenset({"i", "my", "me", "mine", "we", "our"})
_LIKING = frozenset(
    _WORD.findall(
        "prefer preferably like liked likes love loves loved enjoy enjoys hate hates dislike avoid favorite favourite"
        " allergic rather passion passionate always never strongly"
    )
)
_LIKING_PHRASE = re.compile(r"\b(?:fan of|can't stand|cannot stand|not a fan|interested in)\b")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"\b(?:1[5-9]\d\d|20[0-4]\d)\b")
_DATE = frozenset(
    _WORD.findall(
        "january february march april may june july august september october november december monday tuesday"
        " wednesday thursday friday saturday sunday yesterday today tomorrow tonight last next ago week month weekend"
        " morning recently jan feb mar apr jun jul aug sep oct nov dec"
    )
)
_CAPITALS = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][a-z]+")
_SYMBOL = re.compile(r"[_=()\[\]{}<>/\\*#@$%^&|~`+]")
_YOU = frozenset({"you", "your"})
_LIKE_ASCII = {0x130: "i", 0x131: "i", 0x17F: "s", 0x212A: "k"}
"""Non-ASCII letters whose case mapping is an ASCII letter."""

_QUESTION_WORDS = tuple(
    re.compile(rf"\b(?:{words})\b")
    for words in (
        *("when", "where", "who", "how many", "how much", "how long", "how", "why", "what", "which"),
        *("would|could|might|should", "recommend|suggest|best|good"),
    )
)
_MOST_CHARS = 4_000
"""Maximum number of characters read; more would not change the traits."""

# Caps of the counted traits, of two or three bits; 15 bits in all, with the number of words above them.
_MOST_FIRST_PERSON, _MOST_LIKING, _MOST_CAPITALS, _MOST_SYMBOLS = 3, 3, 5, 3
_SYMBOL_STEP = 0.05
_WORDS_SHIFT, _MOST_WORDS = 15, 0xFFFF
_SHIFTS = np.array([0, 1, 2, 3, 4, 5, 7, 9, 12, 13], np.int32)
_MASKS = np.array([1, 1, 1, 1, 1, 3, 3, 7, 1, 3], np.int32)
_SCALES = np.array(
    [1 / most for most in (1, 1, 1, 1, 1, _MOST_FIRST_PERSON, _MOST_LIKING, _MOST_CAPITALS, 1, _MOST_SYMBOLS)],
    np.float32,
)
_LAYOUT = len(MEMORY_TRAITS), *map(native.address, (_SHIFTS, _MASKS, _SCALES)), _WORDS_SHIFT

_unpack = native.function("trivet_unpack_traits", "qPqPPPiPP")


def pack_traits(text: str) -> int:
    """Pack the traits of a memory's text, without the speaker's name, and its number of words into 31 bits."""
    head = text[:_MOST_CHARS]
    folded = _folded(head)
    words = _WORD.findall(folded)
    digit = _DIGIT.search(head)
    liking = sum(map(_LIKING.__contains__, words)) + len(_LIKING_PHRASE.findall(folded))
    packed = int(text.rstrip().endswith(("?", "？")))
    packed |= ("?" in text or "？" in text) << 1
    packed |= bool(digit) << 2
    packed |= bool(digit and _YEAR.search(head)) << 3
    packed |= (not _DATE.isdisjoint(words)) << 4
    packed |= min(_MOST_FIRST_PERSON, sum(map(_FIRST_PERSON.__contains__, words))) << 5
    packed |= min(_MOST_LIKING, liking) << 7
    packed |= min(_MOST_CAPITALS, len(_CAPITALS.findall(head))) << 9
    packed |= (not _YOU.isdisjoint(words)) << 12
    symbols = len(_SYMBOL.findall(head)) / max(1, len(head))
    packed |= min(_MOST_SYMBOLS, round(symbols / _SYMBOL_STEP)) << 13
    return packed | min(_MOST_WORDS, len(text.split())) << _WORDS_SHIFT


def _folded(text: str) -> str:
    return (text if text.isascii() else text.translate(_LIKE_ASCII)).lower()


def unpack_traits(packed: NDArray[np.int32] | Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The traits of several memories, shape (n, len(MEMORY_TRAITS)), each in [0, 1]; and log(1 + words), shape (n,).

    >>> traits, _ = unpack_traits([pack_traits("I love Rome. Do you?")])
    >>> [name for name, value in zip(MEMORY_TRAITS, traits[0]) if value]
    ['asks', 'asked', 'first_person', 'liking', 'capitals', 'you']
    """
    bits = np.ascontiguousarray(packed, np.int32)
    traits = np.empty((len(bits), len(MEMORY_TRAITS)), np.float32)
    words = np.empty(len(bits), np.float32)
    _unpack(len(bits), native.address(bits), *_LAYOUT, native.address(traits), native.address(words))
    return traits, words


@lru_cache(maxsize=1_024)
def query_traits(text: str) -> tuple[float, ...]:
    """The traits of a query, in the order of `QUERY_TRAITS`."""
    head = text[:_MOST_CHARS]
    lower = head.lower()
    return (
        *(float(bool(words.search(lower))) for words in _QUESTION_WORDS),
        float(bool(_DIGIT.search(head))),
        log1p(len(text.split())) / 3,
        float("?" in text or "？" in text),
        float(not _FIRST_PERSON.isdisjoint(_WORD.findall(_folded(head)))),
    )
