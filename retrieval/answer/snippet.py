"""Snippets: the part of a memory around its first match."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import chain

from graph.names import RUN
from retrieval.text.analysis import LANGUAGES, SIMPLE, analyze, resolve_language
from retrieval.text.characters import CLUSTER, bigrams, prepare
from retrieval.text.identifiers import identifier_terms

MAX_CHARS = 240
"""Longest snippet, including ellipses."""

SEARCHED_CHARS = 60_000
"""How much of a text is searched for a match: 15 ms for the words of English.

Twice as long if an identifier of the query is not there.
"""

ELLIPSIS = "…"

_REACH = 32
"""How many characters a cut may move to fall between words."""

_LONGEST_CACHED = 64
_MOST_CACHED = 16_384

_EXTENDING = frozenset("\u200d\u0e33\u0eb3\uff9e\uff9f") | {*map(chr, range(0xE0020, 0xE0080))}
"""What continues a grapheme besides marks: joiner, Thai and Lao am, half-width voicing, and tags (England's flag)."""

_VIRAMA = 9
"""Canonical combining class."""

_SEPARATORS = ',;!?()[]{}<>"“”«»'
"""What ends a word besides whitespace."""


def snippet(text: str, query: str, language: str = SIMPLE, *, max_chars: int = MAX_CHARS) -> str:
    """At most `max_chars` characters of the text around the first match, "…" at each cut.

    Whitespace is collapsed. A match is a word with a term of the query other than stop words, among the first
    `SEARCHED_CHARS` characters; if an identifier of the query is there, only that is. Without a match the snippet is
    the beginning of the text. Cuts fall between words if a space is near, and never split a grapheme.

    `max_chars` includes the ellipses and is at least 8. Raises InvalidInput for an unknown language.

    >>> snippet("one two three four five six seven", "four", max_chars=16)
    '…four five…'
    """
    squeezed = _squeezed(text)
    if len(squeezed) <= max_chars:
        return squeezed
    name = resolve_language(language)
    searched, identifiers = squeezed[:SEARCHED_CHARS], identifier_terms(query, name)
    start, end = _first_match(searched, identifiers, name) if identifiers else (0, 0)
    if not end:
        start, end = _first_match(searched, query_terms(query, name), name)
    return _cut(squeezed, start, end, max_chars)


def _squeezed(text: str) -> str:
    """Collapse whitespace to single spaces; most texts need no change, which is checked quickly."""
    if text.isprintable() and "  " not in text and text[:1] != " " != text[-1:]:
        return text
    return " ".join(text.split())


@lru_cache(maxsize=1_024)
def query_terms(query: str, language: str) -> frozenset[str]:
    """The query's terms; without English stop words if the language has no list of its own."""
    terms = frozenset(analyze(query, language))
    if LANGUAGES[language].stops:
        return terms
    return terms - LANGUAGES["english"].stops or terms


@cache
def _terms_in(language: str) -> Callable[[str], Sequence[str]]:
    """A function that returns a word's terms, cached unless the word is long."""
    uncached = partial(analyze, language=language)
    cached = lru_cache(_MOST_CACHED)(uncached)
    return lambda word: (cached if len(word) <= _LONGEST_CACHED else uncached)(word)


def terms_within(text: str, terms: frozenset[str], language: str) -> frozenset[str]:
    """The terms among `terms` that a text contains; `language` is a resolved name."""
    if not text.isascii():
        return terms.intersection(analyze(text, language))
    terms_of = _terms_in(language)
    return terms.intersection(*[chain.from_iterable(map(terms_of, _spaced(text).split()))])


def _spaced(text: str) -> str:
    """The text with a space for each separator; splitting that takes a third of the time of matching words by regex."""
    for separator in _SEPARATORS:
        text = text.replace(separator, " ")
    return text


def _first_match(text: str, terms: frozenset[str], language: str) -> tuple[int, int]:
    """The span of the first word with one of the terms; (0, 0) if there is none. Its only blanks are single spaces."""
    terms_of = _terms_in(language)
    words = _spaced(text).split(" ")
    for position, word in enumerate(words):
        if word.isascii() and terms.isdisjoint(terms_of(word)):
            continue
        if within := _first_match_within(word, terms, terms_of):
            start = position + sum(map(len, words[:position]))  # a separator follows each word
            return start + within[0], start + within[1]
    return 0, 0


def _first_match_within(
    word: str, terms: frozenset[str], terms_of: Callable[[str], Sequence[str]]
) -> tuple[int, int] | None:
    """The span of the first match in a space-delimited word; scripts without spaces are matched by bigrams."""
    offset = 0
    for piece in RUN.split(word):
        if RUN.match(piece):
            prepared, before = prepare(piece), 0
            for character, pair in zip(CLUSTER.findall(prepared), bigrams(prepared), strict=False):
                if pair in terms or not terms.isdisjoint(pair):
                    start = bisect_left(range(len(piece)), before, key=lambda size: len(prepare(piece[:size])))
                    return offset + start, offset + start + len(pair)
                before += len(character)
        elif piece and not terms.isdisjoint(terms_of(piece)):
            return offset, offset + len(piece)
        offset += len(piece)
    return None


def _cut(text: str, start: int, end: int, max_chars: int) -> str:
    """The window of at most `max_chars` characters around text[start:end]."""
    room = max_chars - 2 * len(ELLIPSIS)
    middle = (start + min(end, start + room)) // 2
    first = max(0, min(middle - room // 2, len(text) - room))
    last = min(len(text), first + room)
    if first > 0:
        space = text.rfind(" ", max(0, first - 1), first)
        space = space if space >= 0 else text.find(" ", first, min(first + _REACH, max(start, first)))
        first = space + 1 if space >= 0 else _between_graphemes(text, range(first, min(first + _REACH, len(text))))
    if last < len(text):
        space = text.rfind(" ", max(last - _REACH, min(end, last), first + 1), last + 1)
        last = space if space >= 0 else _between_graphemes(text, range(last, max(last - _REACH, first), -1))
    return (ELLIPSIS if first else "") + text[first:last].strip() + (ELLIPSIS if last < len(text) else "")


def _inside_grapheme(text: str, position: int) -> bool:
    """Whether a cut before text[position] would split a grapheme: a base from its marks, joiners or second half."""
    here, before = text[position], text[position - 1]
    if unicodedata.category(here) in ("Mn", "Mc", "Me") or here in _EXTENDING or before == "\u200d":
        return True
    if unicodedata.combining(before) == _VIRAMA:  # joins two consonants
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff" or "\u1160" <= here <= "\u11ff":  # skin tones, Hangul vowels and finals
        return True
    if _is_flag_half(here):
        run = position
        while run and _is_flag_half(text[run - 1]):
            run -= 1
        return (position - run) % 2 == 1
    return "\ud800" <= before <= "\udbff" and "\udc00" <= here <= "\udfff"


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _between_graphemes(text: str, positions: range) -> int:
    """The first position at which a cut splits no grapheme; the very first if all would."""
    return next((each for each in positions if not _inside_grapheme(text, each)), positions.start)
