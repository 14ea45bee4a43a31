"""Normalised texts, compared to find near-duplicates and contradictions."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

from graph.names import HAN_KANA, HANGUL, RUN
from graph.stopwords import word_list
from retrieval.text.characters import bigrams

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_SIGNED = re.compile(r"(?<!\w)[-+]\d+(?:[.,:/]\d+)*")
_NUMBER_WORDS = word_list("number_and_calendar_words")
_NEGATIONS = word_list("negations")
_EAST_ASIAN_NEGATION = re.compile("[不没沒無无非未別别莫]|ない|ません|なかった|않|못|없|아니")
_EAST_ASIAN_NUMERAL = re.compile("[〇零一二三四五六七八九十百千万萬億亿两兩]")
_EAST_ASIAN_PAIR = re.compile(f"[{HAN_KANA}{HANGUL}]+")
_QUESTION = re.compile("[?؟]|[\u0370-\u03ff\u1f00-\u1fff];")  # a Greek question ends in what NFKC makes a semicolon
_KEPT_PUNCTUATION = frozenset("'#%@&")  # C#, 5%, don't

MAX_SQUEEZED = 4_000
"""Longest text, in characters, that is split into words; a longer one is treated as a single word.

Hundreds of texts are compared for one answer: normalising texts of any length would take seconds, hashing them takes
milliseconds.
"""


class _Squeeze(dict[int, str]):
    """A table for `str.translate` that maps punctuation, separators and controls to a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        drop = unicodedata.category(character)[0] in "PZC" and character not in _KEPT_PUNCTUATION
        self[code] = " " if drop else character
        return self[code]


_SQUEEZE = _Squeeze({ord("’"): "'"})


class NormalizedText:
    """A text without case, punctuation and spacing; texts that compare equal have the same meaning.

    The properties are computed on first use: most texts resemble no other and need only their words.

    Attributes:
        words: in order; bigrams for scripts without spaces.
    """

    def __init__(self, words: tuple[str, ...], plain: str, squeezed: str) -> None:
        """`plain` is the text, `squeezed` the text without punctuation, both in the original case."""
        self.words = words
        self._plain = plain
        self._squeezed = squeezed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NormalizedText) and self.words == other.words and self._marks == other._marks

    @property
    def _marks(self) -> tuple[tuple[str, ...], int, bool]:
        """Its numbers and negations, and whether it is a question."""
        return self.numbers, self.negations, _QUESTION.search(self._plain) is not None

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Numbers, number words and calendar words, sorted."""
        plain = self._plain
        numbers = [number.replace(",", "") for number in _NUMBER.findall(plain)]
        if "-" in plain or "+" in plain:
            numbers += _SIGNED.findall(plain)
        numbers += [word for word in self._pieces if word in _NUMBER_WORDS]
        if _without_spaces(plain):
            numbers += _EAST_ASIAN_NUMERAL.findall(plain)
        return tuple(sorted(numbers))

    @cached_property
    def negations(self) -> int:
        """The number of negations."""
        negations = sum(word in _NEGATIONS or word.endswith("n't") for word in self._pieces)
        if _without_spaces(self._plain):
            negations += len(_EAST_ASIAN_NEGATION.findall(self._plain))
        return negations

    @cached_property
    def names(self) -> frozenset[str]:
        """The capitalised words, case-folded."""
        return frozenset(word.casefold() for word in RUN.sub(" ", self._squeezed).split() if word[0].isupper())

    @cached_property
    def without_capitals(self) -> frozenset[str]:
        """The words in scripts without capitals, any of which may be a name; in East Asian ones the characters."""
        parts = (part for word in self.words for part in (word if _EAST_ASIAN_PAIR.fullmatch(word) else (word,)))
        return frozenset(part for part in parts if part[:1].isalpha() and part.lower() == part.upper())

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The distinct words."""
        return frozenset(self.words)

    @property
    def _pieces(self) -> list[str]:
        """The words separated by spaces."""
        return self._squeezed.casefold().split()


def without_speaker(text: str, speaker: str | None) -> str:
    """The text without its "Name: " prefix if that names the speaker.

    >>> without_speaker("Caroline: I went.", "Caroline"), without_speaker("Note: I went.", "Caroline")
    ('I went.', 'Note: I went.')
    """
    if not speaker or text[len(speaker) : len(speaker) + 1] != ":":
        return text
    rest = text[len(speaker) + 1 :].strip()
    return rest if rest and text[: len(speaker)].casefold() == speaker.casefold() else text


def wording(text: str, speaker: str | None = None) -> NormalizedText:
    """Normalise a text without its speaker's prefix; a text above `MAX_SQUEEZED` becomes a single word.

    >>> wording("I DON'T like 2 dogs!").words, wording("I DON'T like 2 dogs!").negations
    (('i', "don't", 'like', '2', 'dogs'), 1)
    """
    plain = without_speaker(text, speaker).strip()
    if len(plain) <= MAX_SQUEEZED and not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain)
    if len(plain) > MAX_SQUEEZED:  # checked again, as normalisation can turn one character into 18
        return NormalizedText((plain.strip(),), "", "")
    squeezed = plain.translate(_SQUEEZE)
    words = squeezed.casefold().split() or [plain.strip()]
    if _without_spaces(plain):
        words = _with_bigrams(words)
    return NormalizedText(tuple(words), plain, squeezed)


def comparable(text: str, speaker: str | None = None) -> bytes:
    """The words of a text in bytes, cheaper to make than `wording`, as `native/near_duplicates.c` compares them.

    Words are separated by any ASCII punctuation, and ASCII letters keep their case. Equal wordings give equal words; a
    text above `MAX_SQUEEZED` becomes a single word.
    """
    plain = without_speaker(text, speaker)
    if plain.isascii() and len(plain) <= MAX_SQUEEZED:
        return plain.encode()
    words = wording(text, speaker).words
    if len(words[0]) > MAX_SQUEEZED:
        return str(hash(words[0])).encode()
    return " ".join(words).encode("utf-8", "surrogatepass")


def _without_spaces(text: str) -> bool:
    """Whether part of the text is in a script without spaces."""
    return not text.isascii() and RUN.search(text) is not None


def _with_bigrams(words: list[str]) -> list[str]:
    split: list[str] = []
    for word in words:
        for number, piece in enumerate(RUN.split(word)):
            split += bigrams(piece) if number % 2 else [piece] if piece else []
    return split


def contradicts(one: NormalizedText, other: NormalizedText) -> bool:
    """Whether two similar texts differ in a number, a date, a negation, a question or a name.

    In a script without capitals they differ in a name if each has a word that the other has not.

    >>> contradicts(wording("we met in Paris"), wording("we met in London"))
    True
    >>> contradicts(wording("we met in Paris"), wording("so we met in Paris"))
    False
    """
    return (
        one._marks != other._marks
        or not one.names <= other.vocabulary
        or not other.names <= one.vocabulary
        or not (one.without_capitals <= other.without_capitals or other.without_capitals <= one.without_capitals)
    )
