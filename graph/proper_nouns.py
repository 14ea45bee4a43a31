"""Capitalised names: people, places, works, organisations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graph.dates import MONTHS, WEEKDAYS, is_year
from graph.names import singular, without_diacritics, without_ending
from graph.stopwords import (
    ABBREVIATIONS,
    ACRONYMS_TOO,
    CONNECTORS,
    ENGLISH_FUNCTION_WORDS,
    FUNCTION_WORDS,
    GIVEN_NAMES,
    INTERJECTIONS,
    NUMBER_WORDS,
    ORDINARY_NAMES,
    PLAIN_GIVEN_NAMES,
    STOP_WORDS,
    word_list,
    words,
)
from graph.tokenizer import MAX_WORD_CHARS, Token, adjacent

MAX_NAME_WORDS = 10

_ENDS_SENTENCE = frozenset(".!?:;\u2026\u2022*\n")
_KEEPS_START = frozenset("\"'\u201c\u201d\u2018\u2019\u00ab\u00bb()[]-\u2013\u2014>_")
_NEVER_NAMES = WEEKDAYS | frozenset(MONTHS) | ABBREVIATIONS | {"ok", "am", "pm", "tv"}
_ALSO_NAMES = frozenset({"young", "love"})
_OPENS_NAMES = frozenset(words("new little long big old great la las le les el los"))
"""Stop words that may begin a name: New York, Little Rock, Las Vegas."""

_NEVER_LAST = (ENGLISH_FUNCTION_WORDS - frozenset(words("down up off over out under a b"))) | INTERJECTIONS
_INSTITUTIONS = word_list("institutions")
"""Head nouns of names that continue after "and" or "for": Museum of Science and Industry."""

_PERSON_DOES = word_list("verbs_of_people")
_ORDINARY_SUBJECTS = frozenset(words("mom mum dad legend research history rumor rumour science everyone nature word"))
_COUNTED = frozenset(
    words("airborne amendment army avenue battalion brigade cavalry century congress division infantry regiment street")
)
_ORDINAL = re.compile(r"\d{1,3}(?:st|nd|rd|th)")
_COMPOUND = re.compile(
    r"-(?:affiliated|aged|area|backed|based|born|bound|built|centric|controlled|designed|educated|era|friendly|funded"
    r"|held|inspired|language|led|level|like|listed|made|only|owned|related|run|speaking|style|themed|trained|type"
    r"|wide|winning)\Z"
)


class NameMention(NamedTuple):
    """A capitalised name; `doubtful` if it may be capitalised only as the first word of a sentence."""

    name: str
    doubtful: bool
    tokens: range


def find_names(text: str, tokens: Sequence[Token]) -> Iterator[NameMention]:
    """Runs of capitalised words, with connectors such as "of the" and "van", initials and numbers.

    Given names that are not also ordinary words count in lower case, too. Names in a heading are doubtful.

    >>> from graph.tokenizer import tokenize
    >>> text = "The New York Times asked maria. Bread rises."
    >>> [(found.name, found.doubtful) for found in find_names(text, tokenize(text))]
    [('New York Times', False), ('maria', False), ('Bread', True)]
    """
    fresh, heading, position = True, False, 0
    while position < len(tokens):
        token = tokens[position]
        if not token.text.islower() and _is_capital(token):
            end = _run_end(text, tokens, position)
            for found in _names_of_run(text, tokens, position, end, fresh):
                yield found._replace(doubtful=True) if heading else found
            fresh, position = False, end
            continue
        if token.kind == "word":
            fresh = False
            if without_diacritics(name := without_ending(token.text)) in PLAIN_GIVEN_NAMES:
                yield NameMention(name, False, range(position, position + 1))
        elif token.kind == "newline":
            fresh, heading = True, False
        elif token.text in _ENDS_SENTENCE:
            fresh = True
        elif token.text == "#" and (position == 0 or tokens[position - 1].kind == "newline"):
            heading = True
        elif token.text not in _KEEPS_START:
            fresh = token.kind == "mark" and ord(token.text[0]) > 0x2190
        position += 1


def _is_capital(token: Token) -> bool:
    word = token.text
    if token.kind == "initials":
        return True
    return (
        token.kind == "word"
        and (word[0].isupper() or word[:2].istitle())
        and len(word) <= MAX_WORD_CHARS
        and "_" not in word
    )


def _run_end(text: str, tokens: Sequence[Token], start: int) -> int:
    """The index after the last token of the name that starts at `start`."""
    end = start + 1
    institution = tokens[start].text.casefold() in _INSTITUTIONS
    for position in range(end, min(len(tokens), start + 2 * MAX_NAME_WORDS)):
        last, token = tokens[position - 1], tokens[position]
        if token.text == "." and last.text.casefold() in ABBREVIATIONS and token.start == last.end:
            continue
        if not adjacent(text, last, token) or without_ending(last.text) != last.text:
            break
        if _is_capital(token) or (token.kind == "number" and position == end and len(token.text) < 4):
            end = position + 1
            institution = institution or token.text.casefold() in _INSTITUTIONS
        elif token.text not in CONNECTORS and not (institution and position == end and token.text in ("and", "for")):
            break
    return end


def _names_of_run(text: str, tokens: Sequence[Token], start: int, end: int, fresh: bool) -> Iterator[NameMention]:
    first = _first(tokens, start, end, fresh)
    last = end
    while last > first and _cannot_end(tokens[last - 1]):
        last -= 1
    if first >= last or (last - first == 1 and _single_is_noise(tokens[first])):
        return
    doubtful = fresh and first == start and last - first == 1 and not _is_subject(tokens, first)
    if first == start and start > 0 and adjacent(text, tokens[start - 1], tokens[start]):
        before = tokens[start - 1].text
        if is_year(before):
            yield NameMention(f"{before} {_spelling(text, tokens, first, last)}", False, range(start - 1, last))
        elif _fold(tokens[first].text) in _COUNTED and _ORDINAL.fullmatch(before):
            first -= 1
    yield NameMention(_spelling(text, tokens, first, last), doubtful, range(first, last))


def _first(tokens: Sequence[Token], start: int, end: int, fresh: bool) -> int:
    """The index where the name starts, after "But", "Thanks", "The"; small talk is skipped only at a sentence start."""
    first, talk = start, fresh
    while first < end:
        word, left = _fold(tokens[first].text), end - first - 1
        if _is_acronym(tokens[first]):
            break
        if left and _is_capital(tokens[first + 1]):
            if word in _OPENS_NAMES and not (talk and _fold(tokens[first + 1].text) in STOP_WORDS | GIVEN_NAMES):
                break
            if word in NUMBER_WORDS and left > fresh:
                break
        if _is_capital(tokens[first]):
            if word not in (STOP_WORDS if talk else FUNCTION_WORDS) and word not in INTERJECTIONS:
                break
            talk = talk and word not in FUNCTION_WORDS
        first += 1
    # "Choosing the Nike Dunk": a first word that is the verb of the name.
    if fresh and end - first > 2 and tokens[first].text.endswith("ing") and tokens[first + 1].text == "the":
        return first + 2
    return first


def _single_is_noise(token: Token) -> bool:
    word = _fold(token.text)
    if _is_acronym(token):
        return False
    if len(word) < 2 or (token.kind == "initials" and len(word) < 4):
        return True
    if word in STOP_WORDS:
        return word not in _ALSO_NAMES
    one = singular(word)
    return one in _NEVER_NAMES or (token.text.isupper() and one in STOP_WORDS)


def _is_acronym(token: Token) -> bool:
    return len(token.text) > 1 and token.text.isupper() and token.text.casefold() in ACRONYMS_TOO


def _is_subject(tokens: Sequence[Token], position: int) -> bool:
    """Whether a sentence's first word is a name after all: a known one, or the subject of a verb of people."""
    word = without_diacritics(_fold(without_ending(tokens[position].text)))
    if word in GIVEN_NAMES and word not in ORDINARY_NAMES:
        return True
    after = tokens[position + 1].text if position + 1 < len(tokens) else ""
    if after == "and" and position + 2 < len(tokens) and tokens[position + 2].text == "I":
        return not word.endswith("s")
    if after not in _PERSON_DOES or tokens[position].text.isupper():
        return False
    return (word in GIVEN_NAMES or not word.endswith(("s", "ly", "ing"))) and word not in _ORDINARY_SUBJECTS


def _spelling(text: str, tokens: Sequence[Token], first: int, last: int) -> str:
    return _COMPOUND.sub("", " ".join(without_ending(text[tokens[first].start : tokens[last - 1].end]).split()))


def _cannot_end(token: Token) -> bool:
    if _fold(token.text) in _NEVER_LAST:
        return not _is_acronym(token)
    return not _is_capital(token) and token.kind != "number"


def _fold(word: str) -> str:
    return word.replace("\u2019", "'").casefold()
