"""Times in other languages than English, translated to English by `graph/data/times.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graph.dates import MONTHS
from graph.stopwords import data_lines, words

ENGLISH = {
    phrase: english
    for english, _, phrases in (line.partition(": ") for line in data_lines("times"))
    for phrase in phrases.split(", ")
}
"""The English for folded times of other languages; "{}" is a number."""

_SPELLED = (
    "ein einem einer un una une um uma een один одну",
    "zwei dos deux due dois duas twee два две दो",
    "drei tres trois tre três drie три तीन",
    "vier cuatro quatre quattro quatro четыре चार",
    "fünf cinco cinq cinque vijf пять",
    "sechs seis sei zes шесть",
)
_OF_SIGN = {sign: number for number, sign in enumerate("一二三四五六七八九十", start=1)} | {"两": 2}
NUMBERS = {word: number for number, line in enumerate(_SPELLED, start=1) for word in line.split()} | _OF_SIGN
"""Numbers by folded word of another language."""

_SIGNS = "".join(_OF_SIGN)
_NUMBER = re.compile(
    rf"(?:(?<![0-9月{_SIGNS}])(?:[0-9]{{1,3}}|[{_SIGNS}])|(?<!\w)(?:{'|'.join(words(*_SPELLED))})(?!\w))"
)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"\w+")
_OF_YEAR = re.compile(r"\s+del?\Z")


def _expression(phrase: str) -> str:
    """An expression for a time of another language; a month only if a year follows."""
    if _UNSPACED.search(phrase):
        return phrase.format(_NUMBER.pattern)
    year = r"(?:\s+del?)?(?=\s+[0-9]{4}\b)" if ENGLISH[phrase] in MONTHS else ""
    either_case = " ".join(
        f"[{word[0]}{word[0].upper()}]{word[1:]}" if word != "{}" else word for word in phrase.split()
    )
    return rf"{either_case.format(_NUMBER.pattern)}(?!\w){year}"


def _any_of(phrases: Iterable[str]) -> str:
    """An expression for the longest of some phrases; each begins with a letter, by which most are soon ruled out."""
    return f"(?:{'|'.join(map(_expression, sorted(phrases, key=len, reverse=True)))})"


# "晚上" before "周" is an evening, not last week; "目前" before "天" is now. Other scripts match whole words.
FOREIGN = (
    rf"(?P<foreign>(?<!\w){_any_of(phrase for phrase in ENGLISH if not _UNSPACED.search(phrase))}"
    rf"|(?<![早晚目之以大]){_any_of(filter(_UNSPACED.search, ENGLISH))})"
    rf"|(?P<date>[0-9]{{4}}年[0-9]{{1,2}}月(?:[0-9]{{1,2}}[日号])?)|{_UNSPACED.pattern}"
)
"""An expression for times of other languages; of scripts without spaces, for single characters too."""

FIRST_WORDS = frozenset(_WORD.findall(phrase)[-phrase.startswith("{}")] for phrase in ENGLISH)
"""The words with which times of other languages begin, or end if they begin with a number."""


def may_have_foreign(text: str) -> bool:
    """Whether a text may have times in other languages; much faster than searching for them."""
    return bool(_UNSPACED.search(text)) or not FIRST_WORDS.isdisjoint(_WORD.findall(text.casefold()))


def in_english(found: re.Match[str]) -> list[str]:
    """The English words for a match of `FOREIGN`; other matches as they are."""
    if found.lastgroup == "date":
        return [re.sub("[年月]", "-", found[0]).rstrip("-日号")]
    if found.lastgroup != "foreign" or _is_name(found):
        return [found[0]]
    phrase = _OF_YEAR.sub("", found[0].casefold())
    if english := ENGLISH.get(phrase):
        return [english.capitalize()] if english in MONTHS else english.split()
    number = _NUMBER.findall(phrase)[0]
    return ENGLISH[_NUMBER.sub("{}", phrase, count=1)].format(NUMBERS.get(number, number)).split()


def _is_name(found: re.Match[str]) -> bool:
    """Whether a capital within a text makes it a name, such as the philosopher Ayer."""
    return found[0][0].isupper() and found.start() > 0 and ENGLISH.get(found[0].casefold()) == "yesterday"
