"""Folds characters that readers do not distinguish, and pairs those of scripts that are written without spaces.

Diacritics are folded in Latin and Greek, so that "café" matches "cafe", "Zürich" matches "Zurich" and "ΑΘΗΝΑ" matches
"Αθήνα". Languages that distinguish words by them lose some precision, which the query's other terms make up for.
Optional points in Hebrew and Arabic are dropped, and Russian ё becomes е. Marks that carry a vowel or a letter (Indic
scripts, Thai, й, kana) are kept.

Han and kana form one kind of run, Hangul another, Thai, Lao, Khmer and Burmese a third. Korean has spaces, but its
particles attach to the nouns, and bigrams match the noun in either form.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain, pairwise

from graph.names import HAN

_LAST_SCRIPT = 0x1F000  # no script has digits beyond
_LATIN_GREEK = (range(0x00C0, 0x0250), range(0x0370, 0x0400), range(0x1E00, 0x2000))
_OPTIONAL_MARKS = (range(0x0300, 0x0370), range(0x0591, 0x05C8), range(0x064B, 0x0660), range(0x06D6, 0x06DD))
_SINGLES = {
    "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th",
    "ё": "е", "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ي": "ی", "ى": "ی", "ك": "ک",
}  # fmt: skip

# Applied before splitting into words: one form of apostrophe and hyphen, no zero-width characters.
_PREPARE: dict[int, str | None] = {ord(c): "'" for c in "\u2018\u2019\u02bc\u02b9\u00b4\u05f3"}
_PREPARE |= {ord(c): "-" for c in "\u2010\u2011\u2012\u2013\u2212"}
_PREPARE |= {ord(c): " " for c in "\u2120\u2122"}
_PREPARE |= dict.fromkeys([0x00AD, 0x0640, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10)])


def _fold_table() -> dict[int, str | None]:
    digits = (code for code in range(0x0300, _LAST_SCRIPT) if unicodedata.category(chr(code)) == "Nd")
    table: dict[int, str | None] = {code: str(unicodedata.decimal(chr(code))) for code in digits}
    for code in chain(*_LATIN_GREEK):
        base = "".join(c for c in unicodedata.normalize("NFD", chr(code)) if not unicodedata.combining(c))
        if base != chr(code):
            table[code] = base
    table |= dict.fromkeys(chain(*_OPTIONAL_MARKS))
    table |= {ord(letter): plain for letter, plain in _SINGLES.items()}
    return table


_FOLD = _fold_table()


def prepare(text: str) -> str:
    r"""NFKC with one form of apostrophe and hyphen, without zero-width characters.

    >>> prepare("ｆｕｌｌ don’t co\u00adop")
    "full don't coop"
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_PREPARE))


def fold(word: str) -> str:
    """The case-folded word with its diacritics folded as described above.

    >>> fold("café"), fold("αθήνα"), fold("йод"), fold("ёлка")
    ('cafe', 'αθηνα', 'йод', 'елка')
    """
    return word if word.isascii() else word.translate(_FOLD)


_HAN = re.compile(f"[{HAN}]")

CLUSTER = re.compile(
    ".[\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    "\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3\u17dd\u3099\u309a]*",
    re.DOTALL,
)
"""A base character with its vowel and tone marks (Thai, Lao, Burmese, Khmer, kana)."""


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of the run's characters, with their marks; a single character is returned itself.

    >>> bigrams("東京都"), bigrams("茶")
    (['東京', '京都'], ['茶'])
    """
    characters = CLUSTER.findall(run)
    if len(characters) < 2:
        return characters
    return [first + second for first, second in pairwise(characters)]


def han_characters(text: str) -> set[str]:
    """The Han characters of a prepared text, many of which are words by themselves.

    >>> sorted(han_characters("お茶を飲む cha"))
    ['茶', '飲']
    """
    return set() if text.isascii() else set(_HAN.findall(text))
