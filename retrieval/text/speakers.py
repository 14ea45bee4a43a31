"""Speakers: whether a query names one, and whether one is an assistant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from graph.names import is_unspaced, normalize
from graph.stopwords import ORDINARY_NAMES, STOP_WORDS
from retrieval.text.characters import fold

_WORDS = ORDINARY_NAMES | STOP_WORDS
_ASSISTANTS = frozenset(("assistant", "ai", "agent", "bot", "chatbot", "model", "system"))


def plain_name(name: str) -> str:
    """The key of a name, or of a text with names, without diacritics.

    >>> plain_name("José's")
    'jose'
    """
    return fold(normalize(name))


def named_speakers(text: str, speakers: Iterable[str | None]) -> set[str]:
    """The speakers a text names in full, with or without diacritics.

    A name that is also a word ("Will") needs a capital within the sentence.
    """
    said = f" {plain_name(text)} "
    named = {speaker for speaker in set(speakers) if speaker and _with_ends(speaker) in said}
    named = {speaker for speaker in named if not _is_part_of_names(_with_ends(speaker), named, said)}
    return {
        speaker
        for speaker in named
        if plain_name(speaker) not in _WORDS or re.search(rf"\s{re.escape(fold(speaker))}\b", fold(text))
    }


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
