"""Case-folded words and identifiers; an identifier is kept whole and also split into its parts.

`foo_bar`, `fooBar`, `foo-bar` and `foobar` share the term `foobar`; `ABC-123` and `abc123` share `abc123`; the whole
form of versions, addresses and paths keeps dots, `@` and slashes.
"""

from __future__ import annotations

import re
from functools import lru_cache

from graph.names import MARKS
from retrieval.text.characters import fold

_LINK = r"(?:['.\-@/\\&]|(?<=\d)[,:](?=\d))"
_TAIL = r"(?:\+\+|#(?!\w))?"  # C++, C#
_ASCII_CHUNK = re.compile(rf"\w+(?:{_LINK}\w+)*{_TAIL}", re.ASCII)
_CHUNK = re.compile(rf"[\w{MARKS}]+(?:{_LINK}[\w{MARKS}]+)*{_TAIL}")

_ACRONYM = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
# After a digit, any letters: a Turkish suffix.
_CLITIC = re.compile(r"(.+)'(?:s|d|m|re|ve|ll|(?<=\d')[^\W\d_]+)", re.IGNORECASE)
_NEGATION = re.compile(r"[^\W\d_]+n't", re.IGNORECASE)
_ELISION = re.compile(
    r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|dell|all|nell|sull|dall|coll|quell|bell)'(?=..)", re.IGNORECASE
)
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")

MAX_WHOLE = 128
"""Longest identifier that is kept whole; a longer one (a query string, a blob) gives only its parts."""

_MAX_SPLIT = 64
"""Longest run of word characters that is split at capitals and digits; a blob stays one term."""

_MAX_CACHED = 64


def chunks(text: str) -> list[str]:
    """Runs of word characters, with the punctuation inside identifiers, from `prepare`d text in order.

    >>> chunks("Mail bob@x.org, see ./src/foo_bar.py (v1.2).")
    ['Mail', 'bob@x.org', 'see', 'src/foo_bar.py', 'v1.2']
    """
    return (_ASCII_CHUNK if text.isascii() else _CHUNK).findall(text)


def split(chunk: str) -> tuple[str, ...]:
    """The case-folded terms of a chunk, the whole first; each has a letter or a digit.

    >>> split("fooBar"), split("ABC-123"), split("v1.2.3"), split("a@b.c")
    (('foobar', 'foo', 'bar'), ('abc123', 'abc', '123'), ('v1.2.3', 'v1', '2', '3'), ('a@b.c', 'a', 'b.c', 'b', 'c'))
    >>> split("__"), split("#"), split("__init__")
    ((), (), ('init',))
    >>> split("Caroline's"), split("don't"), split("O'Brien"), split("U.S.A"), split("1,000")
    (('caroline',), ("don't",), ('obrien', 'brien'), ('usa',), ('1000',))
    """
    return _cached_terms(chunk) if len(chunk) <= _MAX_CACHED else _terms(chunk)


def _terms(chunk: str) -> tuple[str, ...]:
    """The terms of a chunk; none if it is only the punctuation left after removing a script without spaces."""
    return tuple(term for term in _split(chunk) if _LETTER_OR_DIGIT.search(term))


def _split(chunk: str) -> tuple[str, ...]:
    if chunk.isalpha() and (chunk.islower() or chunk[1:].islower() or chunk.isupper()):
        return (chunk.casefold(),)
    if chunk.endswith(("+", "#")):
        return (chunk.casefold(), *_split(chunk.rstrip("+#")))
    if _THOUSANDS.fullmatch(chunk):
        return (chunk.replace(",", ""),)
    if _ACRONYM.fullmatch(chunk):
        return (chunk.replace(".", "").casefold(),)
    clitic = _CLITIC.fullmatch(chunk) if len(chunk) <= MAX_WHOLE else None  # one call per clitic
    if clitic:
        return _split(clitic[1])
    elision = _ELISION.match(chunk) if len(chunk) <= MAX_WHOLE else None
    if elision:
        return _split(chunk[elision.end() :])
    return _identifier(chunk)


def _identifier(chunk: str) -> tuple[str, ...]:
    """Split at the outermost kind of punctuation, and each part again; the whole precedes its parts."""
    for separators in ("@", "/\\", ":,", ".", "&"):
        if any(separator in chunk for separator in separators):
            parts = [term for part in re.split(f"[{re.escape(separators)}]", chunk) if part for term in _inner(part)]
            return _with_whole(chunk.casefold(), parts)
    if "-" in chunk or "_" in chunk:
        pieces = [piece for piece in re.split("[-_]", chunk) if piece]
        if len(pieces) == 1:
            return _split(pieces[0])
        parts = [term for piece in pieces for term in _split(piece)]
        return _with_whole("".join(pieces).casefold(), parts)
    if "'" in chunk:
        return _with_apostrophe(chunk)
    return _by_case(chunk)


def _inner(part: str) -> tuple[str, ...]:
    """The terms of a part of an identifier; `v1` in `v1.2.3` is not split, `b.c` in an address is not an acronym."""
    if "." in part:
        return _identifier(part)
    return (part.casefold(),) if part.isalnum() and len(part) <= 3 else _split(part)


def _with_apostrophe(chunk: str) -> tuple[str, ...]:
    if _NEGATION.fullmatch(chunk):
        return (chunk.casefold(),)
    pieces = chunk.split("'")
    # O'Brien also yields Brien, İstanbul'da İstanbul; in м'ята the apostrophe is a letter of the word.
    latin = fold(pieces[0]).isascii()
    parts = [term for piece in pieces if len(piece) > 2 for term in _split(piece)] if latin else []
    return _with_whole("".join(pieces).casefold(), parts)


def _by_case(word: str) -> tuple[str, ...]:
    """Split between lower and upper case and between letters and digits; parts of one letter are dropped."""
    whole = word.casefold()
    if len(word) > _MAX_SPLIT or _PLURAL_ACRONYM.fullmatch(word) or word.isdigit():
        return (whole,)
    parts: list[str] = []
    start = 0
    for position in range(1, len(word)):
        before, here = word[position - 1], word[position]
        if (
            before.isdigit() != here.isdigit()
            or (before.islower() and here.isupper())
            or (before.isupper() and here.isupper() and position + 1 < len(word) and word[position + 1].islower())
        ):
            parts.append(word[start:position])
            start = position
    if not start:
        return (whole,)
    parts.append(word[start:])
    return (whole, *(part.casefold() for part in parts if len(part) > 1 or part.isdigit()))


def _with_whole(whole: str, parts: list[str]) -> tuple[str, ...]:
    if parts and (len(whole) > MAX_WHOLE or parts == [whole]):
        return tuple(parts)
    return (whole, *parts)


_cached_terms = lru_cache(maxsize=32_768)(_terms)
