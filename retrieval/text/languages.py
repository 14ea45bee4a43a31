"""The languages of text analysis: a Snowball stemmer each, and stop words for some.

Stemmers: M. F. Porter, Snowball, https://snowballstem.org, through PyStemmer.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import Stemmer

from graph.names import MARKS
from graph.stopwords import word_list
from retrieval.errors import InvalidInput
from retrieval.text.characters import fold

SIMPLE = "simple"
"""No stemming and no stop words, for any language."""

AUTO = "auto"
"""The default: a stemmer per word by its script, English stop words (docs/decisions/0001-language-of-analysis.md)."""


class Language(NamedTuple):
    """How words of a language become terms.

    Attributes:
        stops: stop words, case-folded and with folded diacritics.
        fold_first: whether diacritics are folded before stemming; most stemmers expect diacritics.
    """

    stops: frozenset[str]
    fold_first: bool


_CODES = {
    "arabic": "ar", "armenian": "hy", "basque": "eu", "catalan": "ca", "czech": "cs", "danish": "da", "dutch": "nl",
    "english": "en", "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr", "german": "de",
    "greek": "el", "hindi": "hi", "hungarian": "hu", "indonesian": "id", "irish": "ga", "italian": "it",
    "lithuanian": "lt", "nepali": "ne", "norwegian": "no", "persian": "fa",
    "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "serbian": "sr", "sesotho": "st", "spanish": "es", "swedish": "sv", "tamil": "ta", "turkish": "tr", "yiddish": "yi",
}  # fmt: skip

_UNSTEMMED = {
    "chinese": "zh", "japanese": "ja", "korean": "ko", "thai": "th", "lao": "lo", "khmer": "km", "burmese": "my",
    "none": "",
}  # fmt: skip

_FOLD_FIRST = frozenset({"english", "indonesian"})

_OF_SCRIPT = {
    "LATIN": "english", "CYRILLIC": "russian", "GREEK": "greek", "ARABIC": "arabic", "ARMENIAN": "armenian",
    "DEVANAGARI": "hindi", "TAMIL": "tamil",
}  # fmt: skip


_STOP_WORDS = {
    name: frozenset(map(fold, word_list(f"stop_words/{name}")))
    for name in ("english", "german", "french", "spanish", "italian", "portuguese", "dutch", "russian")
}

LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {AUTO: Language(_STOP_WORDS["english"], fold_first=True), SIMPLE: Language(frozenset(), fold_first=True)}
    | {
        name: Language(_STOP_WORDS.get(name, frozenset()), fold_first=name in _FOLD_FIRST)
        for name in sorted(_CODES.keys() & set(Stemmer.algorithms()))
    }
)
"""By canonical name, including `simple`."""

_NAMES = (
    {name: name for name in LANGUAGES}
    | {code: name for name, code in _CODES.items() if name in LANGUAGES}
    | {key: SIMPLE for name, code in _UNSTEMMED.items() for key in (name, code) if key}
    | {"nb": "norwegian", "nn": "norwegian"}
)


def resolve_language(name: str) -> str:
    """The canonical name (a key of `LANGUAGES`) for a language name or ISO 639-1 code.

    Case and region are ignored. Languages indexed by bigrams (Chinese, Japanese, Korean, Thai, ...) are `simple`.
    Raises InvalidInput, with the field `language`, for an unknown one.

    >>> resolve_language("en"), resolve_language("German"), resolve_language("pt-BR"), resolve_language("ja")
    ('english', 'german', 'portuguese', 'simple')
    """
    key = name.strip().casefold().replace("_", "-")
    found = _NAMES.get(key) or _NAMES.get(key.partition("-")[0])
    if found is None:
        known = ", ".join(LANGUAGES)
        raise InvalidInput(f"unknown language {name[:64]!r}; known are {known}", loc=("language",))
    return found


_MARK = re.compile(f"[{MARKS}]")
_local = threading.local()


def _stemmer(name: str) -> Stemmer.Stemmer:
    """The stemmer of this thread, as a stemmer is not thread-safe."""
    stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    if name not in stemmers:
        stemmers[name] = Stemmer.Stemmer(name, 0)  # without its own cache: `_term_of` has one
    return stemmers[name]


@lru_cache(maxsize=32_768)
def _term_of(word: str, name: str) -> str:
    if name == AUTO:
        script = "LATIN" if word.isascii() else unicodedata.name(word[0], "").partition(" ")[0]
        name = _OF_SCRIPT.get(script, SIMPLE)
    language = LANGUAGES[name]
    if name == SIMPLE or not _MARK.sub("", word).isalpha():  # vowel signs, as in किताब, are no letters for Python
        return fold(word)
    if language.fold_first:
        return str(_stemmer(name).stemWord(fold(word)))
    return fold(str(_stemmer(name).stemWord(word)))


def term_of(word: str, name: str) -> str:
    """The term of a case-folded word in a language (canonical name): folded, and stemmed if it consists of letters.

    >>> term_of("running", "english"), term_of("running", "simple"), term_of("häuser", "german")
    ('run', 'running', 'haus')
    >>> term_of("running", "auto"), term_of("книгами", "auto")
    ('run', 'книг')
    """
    return _term_of(word, name) if len(word) <= 64 else fold(word)


def stems(words: Sequence[str]) -> list[str]:
    """The terms of lower-case English words of ASCII letters, not cached.

    >>> stems(["running", "runner"])
    ['run', 'runner']
    """
    return list(_stemmer("english").stemWords(words))
