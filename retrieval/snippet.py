"""The piece of a memory that shows why it matched."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from retrieval.text.analysis import LANGUAGES, SIMPLE, analyze, resolve_language
from retrieval.text.cjk import RUN, bigrams
from retrieval.text.normal import prepare

MAX_CHARS = 240
"""Longest snippet, ellipses included."""

ELLIPSIS = "…"

_REACH = 32
"""How far a cut may move to fall between words."""

_LONGEST_CACHED = 64

_WORD = re.compile(r"[^\s,;!?()\[\]{}<>\"“”«»]+")


def snippet(text: str, query: str, language: str = SIMPLE, *, max_chars: int = MAX_CHARS) -> str:
    """At most `max_chars` characters of the text around the first match, "…" on each cut side.

    Whitespace is squeezed. A match is a word with a term of the query, stop words aside; without one
    it is the beginning. Cuts fall between words where a space is near, never within a grapheme.

    Args:
        text: the memory.
        query: the query, analysed as the memories are.
        language: the namespace's language of analysis.
        max_chars: bound of the result, ellipses included, at least 8.

    Raises:
        InvalidInput: an unknown language.

    >>> snippet("one two three four five six seven", "four", max_chars=16)
    '…four five…'
    """
    squeezed = " ".join(text.split())
    if len(squeezed) <= max_chars:
        return squeezed
    start, end = _first_match(squeezed, _query_terms(query, resolve_language(language)), language)
    return _cut(squeezed, start, end, max_chars)


@lru_cache(maxsize=1_024)
def _query_terms(query: str, language: str) -> frozenset[str]:
    """The terms to look for; function words of English go where the language has no list of its own."""
    terms = frozenset(analyze(query, language))
    if LANGUAGES[language].stops:
        return terms
    return terms - LANGUAGES["english"].stops or terms


@lru_cache(maxsize=16_384)
def _terms(word: str, language: str) -> frozenset[str]:
    return frozenset(analyze(word, language))


def _first_match(text: str, terms: frozenset[str], language: str) -> tuple[int, int]:
    """Where the first word with one of the terms lies; (0, 0) without one."""
    for start, word in _pieces(text):
        if not RUN.match(word):
            found = _terms(word, language) if len(word) <= _LONGEST_CACHED else frozenset(analyze(word, language))
            if not found.isdisjoint(terms):
                return start, start + len(word)
            continue
        for offset, pair in enumerate(bigrams(prepare(word))):
            if pair in terms or not terms.isdisjoint(pair):
                return start + offset, start + offset + len(pair)
    return 0, 0


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Words with their offsets; a run of a script without spaces is a piece of its own."""
    for match in _WORD.finditer(text):
        if match[0].isascii():
            yield match.start(), match[0]
            continue
        offset = match.start()
        for piece in RUN.split(match[0]):
            if piece:
                yield offset, piece
            offset += len(piece)


def _cut(text: str, start: int, end: int, max_chars: int) -> str:
    """The window around text[start:end]."""
    room = max_chars - 2 * len(ELLIPSIS)
    middle = (start + min(end, start + room)) // 2
    first = max(0, min(middle - room // 2, len(text) - room))
    last = min(len(text), first + room)
    if first > 0:
        space = text.rfind(" ", max(0, first - 1), first)
        space = space if space >= 0 else text.find(" ", first, min(first + _REACH, max(start, first)))
        first = space + 1 if space >= 0 else _next_grapheme(text, first)
    if last < len(text):
        space = text.rfind(" ", max(last - _REACH, min(end, last), first + 1), last + 1)
        last = space if space >= 0 else _previous_grapheme(text, last, first)
    return (ELLIPSIS if first else "") + text[first:last].strip() + (ELLIPSIS if last < len(text) else "")


def _inside_grapheme(text: str, at: int) -> bool:
    """Whether a cut before text[at] would part a character from its marks, joiners or second half."""
    here, before = text[at], text[at - 1]
    if unicodedata.category(here) in ("Mn", "Mc", "Me") or here == "\u200d" or before == "\u200d":
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff" or "\u1160" <= here <= "\u11ff":  # skin tones, Hangul vowels and finals
        return True
    if _is_flag_half(here):
        run = at
        while run and _is_flag_half(text[run - 1]):
            run -= 1
        return (at - run) % 2 == 1
    return "\ud800" <= before <= "\udbff" and "\udc00" <= here <= "\udfff"


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _next_grapheme(text: str, at: int) -> int:
    for moved in range(at, min(at + _REACH, len(text))):
        if not _inside_grapheme(text, moved):
            return moved
    return at


def _previous_grapheme(text: str, at: int, first: int) -> int:
    for moved in range(at, max(at - _REACH, first), -1):
        if not _inside_grapheme(text, moved):
            return moved
    return at
