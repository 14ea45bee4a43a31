"""Word lists, each read once from a file in `graph/data`."""

from __future__ import annotations

from functools import cache
from importlib import resources


def words(*texts: str) -> tuple[str, ...]:
    """All words of the texts, in order."""
    return tuple(word for text in texts for word in text.split())


def data_lines(name: str) -> list[str]:
    """The lines of `graph/data/<name>.txt` without comments, which start with `#`."""
    text = resources.files(__package__).joinpath("data", f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


@cache
def word_list(name: str) -> frozenset[str]:
    """The words in `graph/data/<name>.txt`, case-folded: Greek ones have no final sigma.

    >>> "mrs" in word_list("abbreviations")
    True
    """
    return frozenset(words(*map(str.casefold, data_lines(name))))


NUMBER_WORDS = word_list("numbers")

INTERJECTIONS = word_list("interjections")
"""Words of address and exclamation: they may stand next to a name but are not part of it."""

WEAK_WORDS = word_list("weak_adjectives")
"""Adjectives that may begin a noun phrase, but neither end one nor form one alone."""

FAINT_WORDS = word_list("faint_nouns")
"""Nouns that carry meaning only within a phrase: "idea", "spare part"."""

CONNECTORS = word_list("name_connectors")
"""Lower-case words allowed inside a capitalised name."""

ABBREVIATIONS = word_list("abbreviations")
"""Words whose full stop does not end a sentence."""

ENGLISH_FUNCTION_WORDS = word_list("function_words")
FOREIGN_FUNCTION_WORDS = word_list("foreign_function_words")

FUNCTION_WORDS = ENGLISH_FUNCTION_WORDS | NUMBER_WORDS | FOREIGN_FUNCTION_WORDS
"""Function words and numbers, folded."""

STOP_WORDS = FUNCTION_WORDS | INTERJECTIONS | word_list("small_talk") | word_list("common_verbs")
"""Folded function words, small talk and the commonest verbs: not part of noun phrases, and no start of a name."""

ACRONYMS_TOO = (FOREIGN_FUNCTION_WORDS | {"us"}) - (ENGLISH_FUNCTION_WORDS - {"us"})
"""Stop words that are acronyms in capitals: UN, LA, US."""

ORDINARY_NAMES = word_list("ordinary_names")
"""Names that are also words: they count as names only with a capital inside a sentence."""

NICKNAMES: dict[str, frozenset[str]] = {}
"""Nicknames by full given name: "michael" -> mike, mikey, mick, mickey."""

FORMAL_NAMES: dict[str, frozenset[str]] = {}
"""Full given names by nickname, folded: "mel" -> melanie, melinda, melissa, melvin."""

for _formal, _, _short in (line.partition(": ") for line in data_lines("nicknames")):
    NICKNAMES[_formal] = frozenset(_short.split())
    for _nickname in _short.split():
        FORMAL_NAMES[_nickname] = FORMAL_NAMES.get(_nickname, frozenset()) | {_formal}

GIVEN_NAMES = word_list("given_names").union(NICKNAMES, FORMAL_NAMES)
"""All known given names and nicknames, folded."""

PLAIN_GIVEN_NAMES = GIVEN_NAMES - ORDINARY_NAMES
"""Names that are hardly ever anything else, even in lower case."""
