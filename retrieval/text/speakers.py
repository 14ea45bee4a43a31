"""Speakers: whether a query names one, and whether one is an assistant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from graph.names import is_unspaced, normalize
from graph.spellings import HONORIFICS
from graph.stopwords import (
    ENGLISH_FUNCTION_WORDS,
    FORMAL_NAMES,
    GIVEN_NAMES,
    NICKNAMES,
    ORDINARY_NAMES,
    PLAIN_GIVEN_NAMES,
    STOP_WORDS,
)
from retrieval.text.characters import fold
from retrieval.text.misspellings import seems_english

_WORDS = ORDINARY_NAMES | STOP_WORDS
_UNCALLED = HONORIFICS | STOP_WORDS - GIVEN_NAMES
_ASSISTANTS = frozenset(("assistant", "ai", "agent", "bot", "chatbot", "model", "system"))
_ROLES = _ASSISTANTS | {"human", "user"}

_BEFORE_NAME = r"(?<![\w@.-])(?<!\w['’])(?<!//)"
_AFTER_NAME = r"(?![\w@-]|\.\w)(['’]s\b|(?<=s)['’](?!\w))?"
"""Around a name that is not in an address or a part of another name; with the ending of a possessive."""


def plain_name(name: str) -> str:
    """The key of a name, or of a text with names, without diacritics.

    >>> plain_name("José's")
    'jose'
    """
    return fold(normalize(name))


def short_names(speaker: str) -> frozenset[str]:
    """What else the bearer of a plain name may be called: the first word of several, and given names.

    Titles, initials and stop words ("My Mom") are no such words. With the nicknames of these, and the names that they
    are nicknames of.

    >>> sorted(short_names("Dr. Henderson")), sorted(short_names("Big Dave")), sorted(short_names("Tshepo"))
    (['henderson'], ['dave', 'david'], [])
    """
    name = plain_name(speaker)
    words = name.split(" ")
    first = next((word for word in words if word not in _UNCALLED and len(word) > 1), name)
    own = {first, *(word for word in words if word in GIVEN_NAMES)}
    forms = (names for word in own for names in (NICKNAMES.get(word, ()), FORMAL_NAMES.get(word, ())))
    return frozenset(own.union(*forms) - {name})


def named_speakers(text: str, speakers: Iterable[str | None]) -> set[str]:
    """The speakers a text names, with or without diacritics: in full, or by a short name that no other speaker has.

    A name that is also a word ("Will") needs a capital within the sentence, and so does a short name that is no known
    given name.
    """
    said = f" {plain_name(text)} "
    known = {speaker for speaker in speakers if speaker}
    named = {speaker for speaker in known if _with_ends(speaker) in said}
    named = {speaker for speaker in named if not _is_part_of_names(_with_ends(speaker), named, said)}
    bearers = Counter(word for speaker in known for word in {plain_name(speaker), *short_names(speaker)})
    for speaker in sorted(named, key=len, reverse=True):
        said = said.replace(_with_ends(speaker), " ")
    called = {
        speaker
        for speaker in known - named
        for word in short_names(speaker)
        if bearers[word] == 1 and f" {word} " in said and (word in PLAIN_GIVEN_NAMES or _has_capital(word, text))
    }
    return called | {
        speaker
        for speaker in named
        if plain_name(speaker) not in _WORDS or re.search(rf"\s{re.escape(fold(speaker))}\b", fold(text))
    }


def in_first_person(text: str, speakers: Collection[str]) -> str:
    """An English text that names these speakers, without diacritics and with "I" and "my" for names in Latin letters.

    Other texts, and those with no function word of it or nothing but names, are returned unchanged.

    >>> in_first_person("What did José's friend Liz buy?", ["José", "Elizabeth Lima"])
    'What did my friend I buy?'
    >>> in_first_person("Did Jean-Luc mail dr. Jones' bill to jean@x.org?", ["Jean-Luc", "Dr Jones"])
    'Did I mail my bill to jean@x.org?'
    >>> in_first_person("Will you pay the bill of William?", ["William"])
    'Will you pay the bill of I?'
    """
    full = {plain_name(speaker) for speaker in speakers} - _ROLES
    forms = sorted(filter(str.isascii, full.union(*map(short_names, speakers))), key=len, reverse=True)
    is_english = re.search(r"\w['’]s\b", text) or not ENGLISH_FUNCTION_WORDS.isdisjoint(text.lower().split())
    if not (forms and is_english and seems_english(text)):
        return text

    def pronoun(found: re.Match[str]) -> str:
        name, possessive = found.groups()
        is_plain = name.lower() in PLAIN_GIVEN_NAMES or plain_name(name) in full - _WORDS
        is_name = is_plain or (found.start() > 0 and name[0].isupper())
        return ("my" if possessive else "I") if is_name else found[0]

    any_form = "|".join(re.escape(form).replace(r"\ ", r"[\s.'’-]+") for form in forms)
    said = re.sub(rf"{_BEFORE_NAME}({any_form}){_AFTER_NAME}", pronoun, fold(text), flags=re.IGNORECASE)
    return text if set(re.findall(r"\w+", said)) <= {"I", "my"} else said


def _has_capital(word: str, text: str) -> bool:
    """Whether a text has a word with a capital, and not as its first."""
    return any(each[1].isupper() for each in re.findall(rf"\s{re.escape(word)}\b", fold(text), re.IGNORECASE))


def _with_ends(speaker: str) -> str:
    """The plain name between spaces; in a script without spaces anything may precede and follow it."""
    name = plain_name(speaker)
    return name if is_unspaced(name) else f" {name} "


def _is_part_of_names(name: str, named: Iterable[str], said: str) -> bool:
    """Whether a text says a name only within longer ones: "Ann" in "Mary Ann"."""
    longer = {_with_ends(each) for each in named} - {name}
    return any(name in each and not each.startswith(name) and said.count(name) <= said.count(each) for each in longer)


@lru_cache(maxsize=8_192)
def is_assistant(speaker: str | None) -> bool:
    """Whether a speaker's name is one that chats use for the assistant.

    >>> is_assistant("Assistant"), is_assistant("Ana"), is_assistant(None)
    (True, False, False)
    """
    return speaker is not None and speaker.strip().casefold() in _ASSISTANTS
