"""What a text says, as far as two texts can be told apart without understanding them."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property

from retrieval.text.cjk import RUN, bigrams


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_SIGNED = re.compile(r"(?<!\w)[-+]\d+(?:[.,:/]\d+)*")
_NUMBER_WORDS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen"
    " first second third fourth fifth once twice half double"
    " monday tuesday wednesday thursday friday saturday sunday"
    " january february march april may june july august september october november december"
    " yesterday today tomorrow before after"
)
_NEGATIONS = _words(
    "not never no none nobody nothing nowhere neither nor without cannot cant dont doesnt didnt isnt wont"
    " nicht kein keine keinen keinem keiner nie niemals pas jamais ne non sin nunca não nem senza mai niet geen nooit"
    " не нет ни никогда ikke aldri inte aldrig"
)
_EAST_ASIAN_NEGATION = re.compile("[不没沒無无非未別别莫]|ない|ません|なかった|않|못|없|아니")
_EAST_ASIAN_NUMERAL = re.compile("[〇零一二三四五六七八九十百千万萬億亿两兩]")
_KEPT_PUNCTUATION = frozenset("'#%@&")  # C#, 5%, don't

MAX_SQUEEZED = 4_000
"""Longest text, in characters, that is looked at word by word; a longer one is one word, as it is written.

Two hundred texts are compared while a server answers nobody else: squeezing texts of any length would
take half a second, and hashing them takes milliseconds.
"""


class _Squeeze(dict[int, str]):
    """A table for `str.translate`: punctuation, separators and controls become a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        drop = unicodedata.category(character)[0] in "PZC" and character not in _KEPT_PUNCTUATION
        self[code] = " " if drop else character
        return self[code]


_SQUEEZE = _Squeeze({ord("’"): "'"})


class Wording:
    """A text without case, punctuation and spacing; equal wordings say the same.

    Most texts resemble none and are asked for their words alone; one that resembles many is asked for the rest again
    and again.

    Attributes:
        words: in order; bigrams where a script has no spaces.
    """

    def __init__(self, words: tuple[str, ...], plain: str, squeezed: str) -> None:
        """Words, and what they are of: the text, and it without punctuation, in the case in which it is written."""
        self.words = words
        self._plain = plain
        self._squeezed = squeezed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wording) and self.words == other.words and self._marks == other._marks

    def __hash__(self) -> int:
        return hash(self.words)

    @property
    def _marks(self) -> tuple[tuple[str, ...], int, bool]:
        return self.numbers, self.negations, self.question

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Numbers, number words and words of the calendar, sorted."""
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
        """How often something is denied."""
        negations = sum(word in _NEGATIONS or word.endswith("n't") for word in self._pieces)
        if _without_spaces(self._plain):
            negations += len(_EAST_ASIAN_NEGATION.findall(self._plain))
        return negations

    @cached_property
    def question(self) -> bool:
        """Whether it asks."""
        return "?" in self._plain or "؟" in self._plain

    @cached_property
    def names(self) -> frozenset[str]:
        """The words with a capital letter, case-folded."""
        return frozenset(word.casefold() for word in RUN.sub(" ", self._squeezed).split() if word[0].isupper())

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words, each once."""
        return frozenset(self.words)

    @property
    def _pieces(self) -> list[str]:
        """The words where all are between spaces."""
        return self._squeezed.casefold().split()


def without_speaker(text: str, speaker: str | None) -> str:
    """The text without the prefix "Name: " if that is its speaker.

    >>> without_speaker("Caroline: I went.", "Caroline"), without_speaker("Note: I went.", "Caroline")
    ('I went.', 'Note: I went.')
    """
    if not speaker or text[len(speaker) : len(speaker) + 1] != ":":
        return text
    rest = text[len(speaker) + 1 :].strip()
    return rest if rest and text[: len(speaker)].casefold() == speaker.casefold() else text


def wording(text: str, speaker: str | None = None) -> Wording:
    """The wording of a text, its speaker's prefix left out; texts above `MAX_SQUEEZED` are not looked into.

    >>> wording("I DON'T like 2 dogs!").words, wording("I DON'T like 2 dogs!").negations
    (('i', "don't", 'like', '2', 'dogs'), 1)
    """
    plain = without_speaker(text, speaker).strip()
    if len(plain) <= MAX_SQUEEZED and not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain)
    if len(plain) > MAX_SQUEEZED:  # also what was normalised and grew: one character can become 18
        return Wording((plain.strip(),), "", "")
    squeezed = plain.translate(_SQUEEZE)
    words = squeezed.casefold().split() or [plain.strip()]
    if _without_spaces(plain):
        words = _with_bigrams(words)
    return Wording(tuple(words), plain, squeezed)


def comparable(text: str, speaker: str | None = None) -> bytes:
    """Something in UTF-8 with the words of the wording, cheaper than it, for `native/select.c` to tell texts apart by.

    What stands between words may be any of ASCII's punctuation, and letters of ASCII may be in any case. Equal wordings
    give equal words; of texts above `MAX_SQUEEZED` it has one that only says whether they are equal.
    """
    plain = without_speaker(text, speaker)
    if plain.isascii() and len(plain) <= MAX_SQUEEZED:
        return plain.encode()
    words = wording(text, speaker).words
    if len(words[0]) > MAX_SQUEEZED:
        return str(hash(words[0])).encode()
    return " ".join(words).encode("utf-8", "surrogatepass")


def _without_spaces(text: str) -> bool:
    """Whether some of it is in a script that has no spaces."""
    return not text.isascii() and RUN.search(text) is not None


def _with_bigrams(words: list[str]) -> list[str]:
    split: list[str] = []
    for word in words:
        for number, piece in enumerate(RUN.split(word)):
            split += bigrams(piece) if number % 2 else [piece] if piece else []
    return split


def contradicts(one: Wording, other: Wording) -> bool:
    """Whether two similar texts differ in what matters: a number, a date, a negation, a question, a name.

    >>> contradicts(wording("we met in Paris"), wording("we met in London"))
    True
    >>> contradicts(wording("we met in Paris"), wording("so we met in Paris"))
    False
    """
    return (
        one.numbers != other.numbers
        or one.negations != other.negations
        or one.question != other.question
        or not one.names <= other.vocabulary
        or not other.names <= one.vocabulary
    )
