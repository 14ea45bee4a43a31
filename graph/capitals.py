"""Names written with capitals: people, places, works, organisations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graph.dates import MONTHS, WEEKDAYS, is_year
from graph.scan import MAX_WORD_CHARS, Token, adjacent
from graph.stopwords import ABBREVIATIONS, CONNECTORS, FUNCTION_WORDS, STOP_WORDS

MAX_NAME_WORDS = 10

_ENDS_SENTENCE = frozenset(".!?:;\u2026\u2022*\n")
_KEEPS_START = frozenset("\"'\u201c\u201d\u2018\u2019\u00ab\u00bb()[]-\u2013\u2014>_")
_QUOTED = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb\n]{2,80})[\"\u201d\u00bb]")
_NEVER_NAMES = WEEKDAYS | frozenset(MONTHS) | ABBREVIATIONS | {"ok", "am", "pm", "tv"}
_ALSO_NAMES = frozenset({"will", "mine", "young", "love"})


class NameMention(NamedTuple):
    """A capitalised name; `doubtful` if the capital may only be that of a sentence's first word."""

    name: str
    doubtful: bool
    tokens: range


def find_names(text: str, tokens: Sequence[Token]) -> Iterator[NameMention]:
    """Runs of capitalised words, joined by "of the", "van" and the like, initials and numbers."""
    fresh, at = True, 0
    while at < len(tokens):
        token = tokens[at]
        if _is_capital(token):
            end = _run_end(text, tokens, at)
            yield from _names_of_run(text, tokens, at, end, fresh)
            fresh, at = False, end
            continue
        if token.text in _ENDS_SENTENCE:
            fresh = True
        elif token.text not in _KEEPS_START:
            fresh = token.kind == "mark" and ord(token.text[0]) > 0x2190
        at += 1


def find_quoted(text: str) -> Iterator[str]:
    """Quoted strings that read like the title of a work: capitalised, at most eight words."""
    for match in _QUOTED.finditer(text):
        title = match.group(1).strip(" ,.;")
        if title[:1].isupper() and title[-1:] not in "!?:" and len(title.split()) <= 8:
            yield title


def mostly_capitals(tokens: Sequence[Token]) -> bool:
    """Whether capitals say nothing here, since nearly every word is written in them."""
    words = [token.text for token in tokens if token.kind == "word"]
    loud = sum(word.isupper() and len(word) > 1 for word in words)
    return len(words) > 3 and loud > 0.6 * len(words)


def _is_capital(token: Token) -> bool:
    word = token.text
    if token.kind == "initials":
        return True
    return (
        token.kind == "word"
        and len(word) <= MAX_WORD_CHARS
        and (word[0].isupper() or word[:2].istitle())
        and "_" not in word
    )


def _run_end(text: str, tokens: Sequence[Token], start: int) -> int:
    """The index after the last token of the name that starts at `start`."""
    end, at = start + 1, start + 1
    limit = min(len(tokens), start + 2 * MAX_NAME_WORDS)
    while at < limit:
        last, token = tokens[at - 1], tokens[at]
        if token.text == "." and last.text.casefold() in ABBREVIATIONS and token.start == last.end:
            at += 1
            continue
        gap_ok = adjacent(text, last, token)
        if not gap_ok or _base(last.text) != last.text:
            break
        if _is_capital(token) or (token.kind == "number" and at == end and len(token.text) < 4):
            end = at + 1
        elif token.text.casefold() not in CONNECTORS and token.text != "&":
            break
        at += 1
    return end


def _names_of_run(text: str, tokens: Sequence[Token], start: int, end: int, fresh: bool) -> Iterator[NameMention]:
    first = start
    while first < end and _fold(tokens[first].text) in (STOP_WORDS if fresh or first > start else FUNCTION_WORDS):
        if end - first == 1 and not fresh and first == start and _fold(tokens[first].text) in _ALSO_NAMES:
            break
        first += 1
    while first < end and not _is_capital(tokens[first]):
        first += 1
    last = end
    while last > first and (_fold(tokens[last - 1].text) in FUNCTION_WORDS or not _names(tokens[last - 1])):
        last -= 1
    if first >= last:
        return
    if last - first == 1 and _single_is_noise(tokens[first]):
        return
    name = " ".join(_base(text[tokens[first].start : tokens[last - 1].end]).split())
    doubtful = fresh and first == start and last - first == 1
    yield NameMention(name, doubtful, range(first, last))
    if (
        first == start
        and start > 0
        and is_year(tokens[start - 1].text)
        and adjacent(text, tokens[start - 1], tokens[start])
    ):
        yield NameMention(f"{tokens[start - 1].text} {name}", False, range(start - 1, last))


def _single_is_noise(token: Token) -> bool:
    word = _fold(token.text)
    return len(word) < 2 or word in _NEVER_NAMES or (token.kind == "initials" and len(word) < 4)


def _names(token: Token) -> bool:
    return _is_capital(token) or token.kind == "number"


def _fold(word: str) -> str:
    return word.replace("\u2019", "'").casefold()


def _base(name: str) -> str:
    """The name without a possessive ending."""
    for ending in ("'s", "\u2019s", "'S", "\u2019S"):
        name = name.removesuffix(ending)
    return name
