"""English given names and their nicknames."""

from __future__ import annotations

from graph.stopwords import data_lines, word_list

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
