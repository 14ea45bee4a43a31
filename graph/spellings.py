"""Other spellings of the names in a query: initials, titles, nicknames, acronyms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from graph.extraction import ExtractedMention
from graph.names import ARTICLES, normalize, parts_of_runs, singular
from graph.stopwords import (
    CONNECTORS,
    ENGLISH_FUNCTION_WORDS,
    FORMAL_NAMES,
    GIVEN_NAMES,
    INTERJECTIONS,
    NICKNAMES,
    ORDINARY_NAMES,
    STOP_WORDS,
    words,
)

MAX_QUERY_WORDS = 64
"""Most words of the query that are read, half of them at each end: a longer query has pasted text on one side."""

MAX_NAME_WORDS = 6
MAX_ACRONYM_CHARS = 6
MIN_PREFIX_CHARS = 3

HONORIFICS = frozenset(words("dr doctor mr mister mrs ms miss prof professor sir lady lord madam mx"))
"""Titles of people: part of the written name, not of the identity."""

_UNSAID = CONNECTORS | frozenset(words("and for in a an"))
_WRITTEN_OUT = {"dr": "doctor", "mr": "mister", "prof": "professor", "st": "saint", "mt": "mount", "ft": "fort"}
_OTHER_FORM = _WRITTEN_OUT | {long: short for short, long in _WRITTEN_OUT.items()}
_SPACED_INITIALS = re.compile("((?:. ){2,}+)(..+)")
_NO_VOWEL = re.compile(r"[^aeiouy\d\W_]{2,3}")
_LOUD = re.compile(r"[A-Z]{2,6}|(?:[A-Z]\.){2,6}")

_NEVER_ACRONYMS = (ENGLISH_FUNCTION_WORDS - {"us"}) | INTERJECTIONS
_UNNAMED = STOP_WORDS | HONORIFICS
_FAMILIAR = FORMAL_NAMES.keys() | NICKNAMES.keys()

_TWO_LETTERS = frozenset(words("ai dc eu la nz ny sf uk un us"))
"""Two-letter acronyms that count as such; others are more often a person's initials."""

Means = Literal["spelling", "nickname", "acronym"]


class SpellingVariant(NamedTuple):
    """Another key for words of the query: the kind of variant, and the word or name it stands for."""

    means: Means
    of: str


@dataclass(slots=True)
class Spellings:
    """The keys that the names in a query may have.

    Attributes:
        spans: keys to look up with the positions of the words they cover, variants included.
        variants: the keys of `spans` that the query does not itself contain.
        words: words of the query that may be part of a name.
        rivals: other full given names that a nickname in the query may stand for.
        prefixes: names that may be the start of a longer one.
        acronyms: acronyms in the query.
        alone: words that are not part of a longer name in the query.
        inner: keys of `spans` that are a part of a word, in scripts without spaces; only names are meant by them.
    """

    spans: dict[str, frozenset[int]] = field(default_factory=dict)
    variants: dict[str, SpellingVariant] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    rivals: set[str] = field(default_factory=set)
    prefixes: list[str] = field(default_factory=list)
    acronyms: list[str] = field(default_factory=list)
    alone: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)


def spellings(query: str, mentions: Sequence[ExtractedMention]) -> Spellings:
    """The keys to look up, from the words of a query and the mentions that `extract` finds in it.

    >>> from graph.extraction import extract
    >>> found = spellings("Did J.K. Rowling meet Mel?", extract("Did J.K. Rowling meet Mel?"))
    >>> found.variants["jk rowling"].means, found.variants["melanie"].of
    ('spelling', 'mel')
    """
    pieces = query.split()
    said = both_ends([word for piece in pieces for word in normalize(piece).split()])
    found = Spellings()
    _add_spans(found, said, mentions)
    found.words = [key for key in found.spans if " " not in key and key not in _UNNAMED and len(key) > 1]
    names = [mention.key for mention in mentions if mention.type == "name"]
    longer = {part for name in names if " " in name for part in name.split()}
    found.alone = {
        word
        for position, word in enumerate(said)
        if word not in longer and (position == 0 or len(said[position - 1]) > 1)
    }
    found.acronyms = [
        acronym
        for piece in pieces
        if (loud := _LOUD.fullmatch(piece.strip("?!,;:'\"()")))
        and (acronym := loud.group().replace(".", "").casefold()) not in _NEVER_ACRONYMS
        and (len(acronym) > 2 or acronym in _TWO_LETTERS)
    ]
    if query.isupper() and len(pieces) > 2:
        found.acronyms = []
    found.prefixes = [
        name
        for name in names
        if len(name) >= MIN_PREFIX_CHARS
        and " " not in name
        and not (name in GIVEN_NAMES or name in longer or name in found.acronyms)
    ]
    # In a query with capitals, a phrase in lower case is not a name with an acronym.
    named_by = ("name", "phrase") if query.islower() else ("name",)
    named = {mention.key for mention in mentions if mention.type in named_by}
    heads = {word for word in said if len(word) == 1 or word in _OTHER_FORM or _NO_VOWEL.fullmatch(word)}
    longer_names = [key for key in found.spans if " " in key and (key in named or key.partition(" ")[0] in heads)]
    for key in longer_names:
        for other, means in _other_spellings(key, key in named):
            _add_variant(found, other, means, key)
    if not GIVEN_NAMES.isdisjoint(said):
        _add_nicknames(found, set(names))
    return found


def both_ends(words: list[str]) -> list[str]:
    """The words of a query that are read."""
    half = MAX_QUERY_WORDS // 2
    return words if len(words) <= MAX_QUERY_WORDS else words[:half] + words[-half:]


def initials(key: str) -> frozenset[str]:
    """The acronyms of a name, with and without its small words.

    >>> sorted(initials("united states of america"))
    ['usa', 'usoa']
    """
    parts = key.split()
    return frozenset(("".join(part[0] for part in parts), "".join(part[0] for part in parts if part not in _UNSAID)))


def _add_spans(found: Spellings, said: Sequence[str], mentions: Sequence[ExtractedMention]) -> None:
    spans = found.spans
    bare = [singular(word) for word in said]
    starts = [position for position, word in enumerate(said) if word not in ARTICLES]
    for size in range(min(MAX_NAME_WORDS, len(said)), 0, -1):
        for start in starts:
            end = start + size
            if end <= len(said) and not STOP_WORDS.issuperset(said[start:end]):
                where = frozenset(range(start, end))
                spans.setdefault(" ".join(said[start:end]), where)
                spans.setdefault(" ".join(bare[start:end]), where)
    for mention in mentions:
        if mention.key not in spans:
            parts = set(mention.key.split())
            spans[mention.key] = frozenset(
                [position for position, word in enumerate(said) if word in parts or bare[position] in parts]
            )
    for position, part in parts_of_runs(said):  # in scripts without spaces: 李明 in 李明住在哪里
        if part not in spans:
            spans[part] = frozenset([position])
            found.inner.add(part)


def _add_variant(found: Spellings, key: str, means: Means, of: str) -> None:
    if key not in found.spans and key not in (_NEVER_ACRONYMS if means == "acronym" else STOP_WORDS):
        found.spans[key] = found.spans[of]
        found.variants[key] = SpellingVariant(means, of)


def is_acronym(word: str, of: str) -> bool:
    """Whether a word abbreviates a name that is not a person's.

    >>> is_acronym("nba", "national basketball association"), is_acronym("kb", "karen blixen")
    (True, False)
    """
    if len(word) == 2 and word not in _TWO_LETTERS:
        return False
    return 1 < len(word) <= MAX_ACRONYM_CHARS and word in initials(of) and of.partition(" ")[0] not in GIVEN_NAMES


def _other_spellings(key: str, named: bool) -> Iterator[tuple[str, Means]]:
    """Initials joined and split, titles long and short, and the acronym if it is a name."""
    first, _, rest = key.partition(" ")
    if spaced := _SPACED_INITIALS.fullmatch(key):
        yield f"{spaced[1].replace(' ', '')} {spaced[2]}", "spelling"
    elif _NO_VOWEL.fullmatch(first):
        yield f"{' '.join(first)} {rest}", "spelling"
    if other := _OTHER_FORM.get(first):
        yield f"{other} {rest}", "spelling"
    if named:
        for acronym in sorted(initials(key)):
            if is_acronym(acronym, key):
                yield acronym, "acronym"


def _add_nicknames(found: Spellings, names: set[str]) -> None:
    """Add the full names of nicknames and vice versa, for given names at the start of a name in the query."""
    for key in [key for key in found.spans if key.partition(" ")[0] in _FAMILIAR]:
        first, _, rest = key.partition(" ")
        if key in found.variants:
            continue
        if key not in names and (rest or first in ORDINARY_NAMES or first not in found.alone):
            continue
        formals = FORMAL_NAMES.get(first, frozenset())
        nicknames = NICKNAMES.get(first, frozenset())
        for other in (*sorted(formals), *sorted(nicknames)):
            _add_variant(found, f"{other} {rest}".rstrip(), "nickname", key)
        if not rest:
            found.rivals |= formals
            for nickname in nicknames:
                found.rivals |= FORMAL_NAMES[nickname] - {first}
