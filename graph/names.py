"""Entity names as keys: spellings with the same normal form are one entity."""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from graph.stopwords import GIVEN_NAMES, ORDINARY_NAMES, words

MAX_KEY_CHARS = 256
"""Longest key; at four bytes a character it fits an entry of a Postgres b-tree."""

MAX_TOKEN_CHARS = 64

MAX_RUN_CHARS = 128
"""Most characters of a query in scripts without spaces that are read for names."""

MAX_NAME_IN_RUN = 12
"""Most characters of a name that is found there."""

_KEEP_THEIR_S = frozenset(words("species series news lens christmas texas")) | GIVEN_NAMES
_KEEP_THEIR_S |= {f"{name}s" for name in GIVEN_NAMES - ORDINARY_NAMES}  # Andreas is not Andrea
_END_IN_IE = frozenset(
    words(
        "birdie brownie calorie cookie foodie freebie genie goalie hoodie movie newbie pixie prairie rookie selfie"
        " smoothie townie veggie zombie"
    )
)
ARTICLES = frozenset({"a", "an", "the"})
_POSSESSIVE = re.compile(r"['\u2019\u02bc](?:s\b)?(?!\w)")

_ENDING = re.compile(
    r"['\u2019](?:[sS]|(?<=[^\W\d_]{3}.)(?:(?<=[^\W\d_aeıioöuüAEIİOÖUÜ].)[aeıiuü]|[yn][aeıiuü]|n?[ıiuü]n|n?[dt][ae]n?|y?l[ae]"
    r"|(?:l[ae]r|n?[dt][ae]ki)[^\W\d_]*))\Z"
)
"""English 's, and the Turkish endings of cases, plurals and adjectives after at least three letters."""


def _mark_ranges() -> str:
    marks = {point for point in range(0x300, 0x1F000) if unicodedata.category(chr(point)) in ("Mn", "Mc")}
    firsts, lasts = (sorted(point for point in marks if point + step not in marks) for step in (-1, 1))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


MARKS = _mark_ranges()
r"""The ranges of all combining marks, which continue a word, for a character class; `\w` misses most of them."""

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
HAN_KANA = HAN + "\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
SOUTH_EAST_ASIAN = "\u0e01-\u0e4e\u0e80-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u17dd"

RUN = re.compile(f"([{HAN_KANA}\u3099\u309a]+|[{HANGUL}]+|[{SOUTH_EAST_ASIAN}]+)")
"""A run of one group of scripts; captured, so that `RUN.split` keeps the runs."""

_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")
_STROKES = str.maketrans("øłđħı", "oldhi")
_PIECE = re.compile(rf"[\w{MARKS}]+(?:\+\+|#(?!\w))?")


@lru_cache(maxsize=16_384)
def normalize(name: str) -> str:
    """The key of a name: at most 256 characters, empty only if the name has no visible character.

    Folds compatibility forms and case, drops possessives and leading articles, and replaces punctuation by spaces.
    A name of only punctuation or emoji is its own key.

    >>> normalize("The  Café\u2019s")
    'café'
    >>> normalize("Hewlett-Packard, Inc."), normalize("C++"), normalize("The The")
    ('hewlett packard inc', 'c++', 'the')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    pieces = _PIECE.findall(_POSSESSIVE.sub("", folded))
    while len(pieces) > 1 and pieces[0] in ARTICLES:
        del pieces[0]
    if not pieces:
        pieces = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in folded).split()
    return " ".join(pieces)[:MAX_KEY_CHARS].rstrip()


@lru_cache(maxsize=8_192)
def entity_id(key: str) -> int:
    """The signed 64-bit id of a key, the same on every machine (BLAKE2b, 8 bytes).

    Among ten million keys a collision has a probability of about 3e-6.
    """
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)


def without_diacritics(word: str) -> str:
    """The word without accents on Latin and Greek letters, and without the points of Hebrew and Arabic.

    Marks of other scripts count as letters and stay.

    >>> without_diacritics("josé"), without_diacritics("łukasz")
    ('jose', 'lukasz')
    """
    return word if word.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_STROKES)


def without_ending(name: str) -> str:
    """The name without what an apostrophe joins to it: a possessive 's, or a Turkish ending.

    >>> without_ending("Maria's"), without_ending("İzmir'e"), without_ending("Hawai'i")
    ('Maria', 'İzmir', "Hawai'i")
    """
    return _ENDING.sub("", name)


def is_unspaced(name: str) -> bool:
    """Whether a name has no boundaries in a text: particles and other words follow it without a space.

    >>> is_unspaced("李明"), is_unspaced("明"), is_unspaced("Ann")
    (True, False, False)
    """
    return len(name) > 1 and RUN.fullmatch(name) is not None


def name_tokens(key: str) -> tuple[str, ...]:
    """The distinct words of a key, in order, each at most 64 characters."""
    return tuple(dict.fromkeys(sys.intern(piece[:MAX_TOKEN_CHARS]) for piece in key.split()))


def parts_of_runs(words: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The parts that may be a name in the words of a query, in scripts without spaces, with the positions of the words.

    >>> [part for _, part in parts_of_runs(["who", "李明在"])]
    ['李明', '李明在', '明在']
    """
    left = MAX_RUN_CHARS
    for position, word in enumerate(words):
        for run in RUN.findall(word):
            run = run[:left]
            left -= len(run)
            for start in range(len(run)):
                for end in range(start + 2, min(start + MAX_NAME_IN_RUN, len(run)) + 1):
                    yield position, run[start:end]


def singular(word: str) -> str:
    """A light English singular of a folded word, of at least three letters; names of people stay as they are.

    Harman's S-stemmer (JASIS 42(1), 1991) with its exceptions; other words are returned unchanged.

    >>> [singular(w) for w in ("stories", "movies", "groups", "boxes", "houses", "glass", "bus", "gas")]
    ['story', 'movie', 'group', 'box', 'house', 'glass', 'bus', 'gas']
    """
    if len(word) <= 3 or not word.endswith("s") or without_diacritics(word) in _KEEP_THEIR_S:
        return word
    if word.endswith("ies") and word[:-1] not in _END_IN_IE and len(word) > 4 and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith(("us", "ss", "is")):
        return word
    return word[:-1]


@lru_cache(maxsize=16_384)
def singular_key(key: str) -> str:
    """The key with every word in the singular.

    >>> singular_key("support groups")
    'support group'
    """
    return " ".join(map(singular, key.split()))
