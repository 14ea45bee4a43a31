"""Word lists, each read once from a file in `graph/data`."""

from __future__ import annotations

from functools import cache
from importlib import resources


def words(*texts: str) -> tuple[str, ...]:
    """All words of the texts, in order."""
    return tuple(word for text in texts for word in text.split())


def data_lines(name: str) -> list[str]:
    """The lines of `graph/data/<name>.txt` without comments, which start with `#`."""
    text = resources.files("graph").joinpath("data", f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


@cache
def word_list(name: str) -> frozenset[str]:
    """The words in `graph/data/<name>.txt`.

    >>> "mrs" in word_list("abbreviations")
    True
    """
    return frozenset(words(*data_lines(name)))


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
_FOREIGN = word_list("foreign_function_words")

FUNCTION_WORDS = ENGLISH_FUNCTION_WORDS | NUMBER_WORDS | _FOREIGN
"""Function words and numbers, folded."""

STOP_WORDS = FUNCTION_WORDS | INTERJECTIONS | word_list("small_talk") | word_list("common_verbs")
"""Folded function words, small talk and the commonest verbs: not part of noun phrases, and no start of a name."""

ACRONYMS_TOO = (_FOREIGN | {"us"}) - (ENGLISH_FUNCTION_WORDS - {"us"})
"""Stop words that are acronyms in capitals: UN, LA, US."""
