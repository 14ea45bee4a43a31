"""Words of a query that look misspelt, and the words that may be meant.

A word is taken for misspelt if no memory has it and it is neither a known given name nor an English word, as far as the
embedder's vocabulary and a list of rarer words say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.stopwords import ENGLISH_FUNCTION_WORDS, FOREIGN_FUNCTION_WORDS, GIVEN_NAMES, word_list
from retrieval.text.analysis import AUTO, term_ids
from retrieval.text.languages import LANGUAGES, stems, term_of
from retrieval.text.word_pieces import bundled_tokenizer

CORRECTED = frozenset({AUTO, "english"})
"""The languages of namespaces whose queries are corrected."""

MAX_QUERY_WORDS = 64
"""Most words of a query that is corrected; a longer one is pasted text."""

MOST_MISSPELT = 3
"""Most words of a query for which others are looked up, each within half a millisecond."""

_RARE = word_list("rare_english_words")
_STOPS = LANGUAGES[AUTO].stops
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# In shorter words too many others are one letter away. Parts of addresses, file names and identifiers are no words.
_WORD = re.compile(r"(?<![\w'@./#&-])[A-Za-z]{5,}(?![\w@/#&-]|[.'](?!s\b)\w)")
_LIKE_A_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SOUND_ALIKE = ("aeiouy", "ck", "cs", "sz")


def _confused() -> dict[str, str]:
    """The letters beside each on the keyboard, or that sound like it."""
    confused: dict[str, set[str]] = {letter: set() for letter in _LETTERS}
    for number, row in enumerate(_KEYBOARD):
        for place, letter in enumerate(row):
            for near in _KEYBOARD[max(number - 1, 0) : number + 2]:
                confused[letter].update(near[max(place - 1, 0) : place + 2])
    for alike in _SOUND_ALIKE:
        for letter in alike:
            confused[letter].update(alike)
    return {letter: "".join(sorted(others - {letter})) for letter, others in confused.items()}


_CONFUSED = _confused()


class Misspelt(NamedTuple):
    """A word of a query, where it is, and the words that may be meant, with the ids of their terms, shape (n,)."""

    span: tuple[int, int]
    word: str
    variants: list[str]
    terms: NDArray[np.int64]

    def best(
        self, memories_with: Mapping[int, int], are_names: Callable[[Sequence[str]], Sequence[bool]]
    ) -> str | None:
        """The variant that is meant, given how many memories have its term; None if it is none of them.

        It is a stop word, which every text has, or an English word or part of a name, as `are_names` tells, of several
        the most frequent one. Only a name is meant by a capital within the query ("Redis" is not "reds"). Names must
        not look inflected: the memories may have another form of the term.
        """
        is_named = self.span[0] > 0 and self.word.istitle()
        stops = [word for word in self.variants if word in _STOPS and not is_named]
        counts = map(memories_with.get, self.terms.tolist())
        found = {word: count for word, count in zip(self.variants, counts, strict=True) if count}
        likely = [
            (_is_english(word), count, word)
            for (word, count), stem, is_name in zip(found.items(), stems([*found]), are_names([*found]), strict=True)
            if (is_name and len(word) - len(stem) < 2) or (_is_english(word) and (is_name or not is_named))
        ]
        word = stops[0] if stops else max(likely)[-1] if likely else None
        if word is None or self.word.islower():
            return word
        return word.upper() if self.word.isupper() else word.capitalize()


def misspelt(text: str, unknown: Collection[str], language: str) -> list[Misspelt]:
    """The words of a query that look misspelt, of those whose term is `unknown`, at most `MOST_MISSPELT`.

    There are none in a text that seems to be in another language than English.

    >>> [found.word for found in misspelt("Did Anna exercse, or sing?", {"exercs", "anna"}, "english")]
    ['exercse']
    """
    found = []
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if (
            term_of(word, language) in unknown
            and _LIKE_A_WORD.fullmatch(match[0])
            and (match[0].islower() or match[0].istitle() or text.isupper())
            and not is_known(word)
        ):
            variants = list(variants_of(word))
            found.append(Misspelt(match.span(), match[0], variants, term_ids(stems(variants))))
            if len(found) == MOST_MISSPELT:
                break
    return found if found and seems_english(text) else []


@lru_cache(maxsize=16_384)
def is_known(word: str) -> bool:
    """Whether a lower-case word is a given name, or an English word or a form of one.

    >>> is_known("cookers"), is_known("vegans"), is_known("exercse")
    (True, True, False)
    """
    [stem] = stems([word])
    base = stem.removesuffix("er")
    return word in GIVEN_NAMES or any(map(_is_english, (word, stem, base, f"{base}e", f"{stem[:-1]}y")))


def _is_english(word: str) -> bool:
    return word in _RARE or (len(word) > 2 and bundled_tokenizer().token_to_id(word) is not None)


def variants_of(word: str) -> Iterator[str]:
    """The words one slip away: a letter too many, one missing, two swapped, or one confused with another.

    The first letter is hardly ever wrong (Pollock and Zamora, CACM 27(4), 1984), except for a swap.

    >>> {"exercise", "exercises"} & {*variants_of("exercse")}
    {'exercise'}
    """
    for place in range(len(word)):
        before, here, after = word[:place], word[place], word[place + 1 :]
        if after:
            yield f"{before}{after[0]}{here}{after[1:]}"
        yield from (f"{before}{here}{letter}{after}" for letter in _LETTERS)
        if place:
            yield f"{before}{after}"
            yield from (f"{before}{letter}{after}" for letter in _CONFUSED[here])


def seems_english(text: str) -> bool:
    """Whether a text has more function words of English than of other languages, or none of those, and is not long."""
    words = text.lower().split()
    foreign, english = (
        sum(word.strip("?!,;:.\"'") in function_words for word in words)
        for function_words in (FOREIGN_FUNCTION_WORDS, ENGLISH_FUNCTION_WORDS)
    )
    return len(words) <= MAX_QUERY_WORDS and (not foreign or foreign < english)
