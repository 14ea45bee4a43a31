"""Noun phrases by exclusion: the text between stop words and punctuation.

After RAKE (Rose, Engel, Cramer and Cowley, Text Mining, 2010, ch. 1), with phrases also split into overlapping
pairs, so that "local homeless shelter" and "homeless shelter" share an entity.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from graph.names import singular, without_ending
from graph.stopwords import FAINT_WORDS, STOP_WORDS, WEAK_WORDS, word_list, words
from graph.tokenizer import Token

MAX_PHRASE_WORDS = 3
MIN_TERM_CHARS = 3
MAX_TERM_CHARS = 32

CJK = re.compile(r"[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_CJK_RUN = re.compile(
    r"[\u30a1-\u30fa\u30fc]{2,}|[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]{2,}"
)
_CHINESE_FUNCTION = re.compile(
    "[\u7684\u4e86\u662f\u5728\u6211\u4f60\u4ed6\u5979\u5b83\u548c\u6709\u4e0d\u5c31\u90fd\u4e5f\u4e0e\u53ca\u7740"
    "\u8fc7\u5417\u5462\u5427\u554a\u628a\u88ab\u8fd9\u90a3\u4eec\u4e2a\u5f88\u4f46\u8bf4\u53bb\u4f1a\u8981\u4ec0\u4e48"
    "\u8c01\u54ea\u4e3a\u5bf9\u4ece\u5230\u770b\u5403\u4e70\u53eb]+"
)
MAX_CJK_RUN = 8

_MODIFIER = re.compile(r"\w{2,}(?:[^e]ed|ful|ous|less|iest)")
_ADVERB = re.compile(r"\w{2,}[^\W_]ly")
_CONTRACTION = re.compile(r".*'(?:ve|d|ll|re|m|t)")
_NOUNS_ALL_THE_SAME = word_list("odd_nouns")
"""Nouns with the endings of adverbs and participles."""

_BEFORE_VERB = word_list("before_verbs")
_BEFORE_VERB_STILL = frozenset(
    words("actually also always both even ever just never not often only really still then usually")
)

_Role = Literal["noun", "modifier", "faint", "break", "before verb", "before verb still"]


class _Word(NamedTuple):
    text: str
    role: _Role


def find_phrases(tokens: Sequence[Token]) -> Iterator[tuple[str, ...]]:
    """Runs of content words, singular and folded: each word, each pair, and whole runs of three.

    The word after "I" or "can't" is a verb and never part of a phrase. Phrases do not end in modifiers, and faint nouns
    such as "idea" do not stand alone.

    >>> from graph.tokenizer import tokenize
    >>> list(find_phrases(tokenize("I adopted one from animal shelters")))
    [('adopted',), ('animal',), ('shelter',), ('animal', 'shelter')]
    """
    run: list[_Word] = []
    last_end, verb = _NOWHERE, False
    for token in tokens:
        word = _word(token.text) if token.kind == "word" and len(token.text) <= _LONGEST_CACHED else _BREAK
        content = word.role in _IN_PHRASES
        if run and not (content and token.start - last_end == 1):
            yield from _phrases_of_run(run)
            run = []
        if content:
            run.append(word)
            last_end = _NOWHERE if verb else token.end  # no phrase continues after a verb
        verb = word.role == "before verb" or (verb and word.role == "before verb still")
    yield from _phrases_of_run(run)


def find_cjk(text: str) -> Iterator[str]:
    """Katakana words, and runs of two to eight Han characters between function characters."""
    for match in _CJK_RUN.finditer(text):
        for piece in _CHINESE_FUNCTION.split(match.group()):
            if 2 <= len(piece) <= MAX_CJK_RUN:
                yield piece


def _phrases_of_run(run: Sequence[_Word]) -> Iterator[tuple[str, ...]]:
    for word in run:
        if word.role != "faint":
            yield (word.text,)
    for left, right in itertools.pairwise(run):
        empty = right.role == "modifier" or (right.role == "faint" and left.role == "modifier")
        if not empty and left.text != right.text:
            yield (left.text, right.text)
    if len(run) == MAX_PHRASE_WORDS and run[-1].role != "modifier":
        yield tuple(word.text for word in run)


_NOWHERE = -9
_LONGEST_CACHED = MAX_TERM_CHARS + len("'s")
_IN_PHRASES = frozenset({"noun", "modifier", "faint"})
_BREAK = _Word("", "break")


@lru_cache(maxsize=16_384)
def _word(text: str) -> _Word:
    """The role of a word in a phrase, and its folded singular."""
    folded = text.replace("\u2019", "'").casefold()
    if folded in _BEFORE_VERB:
        return _Word(folded, "before verb")
    if folded in _BEFORE_VERB_STILL:
        return _Word(folded, "before verb still")
    word = without_ending(folded)
    if not MIN_TERM_CHARS <= len(word) <= MAX_TERM_CHARS or word in STOP_WORDS or word[0].isdigit():
        return _BREAK
    if "_" in word or CJK.search(word) or _CONTRACTION.fullmatch(word):
        return _BREAK
    one = singular(word)
    if one in STOP_WORDS:
        return _BREAK
    if one in FAINT_WORDS:
        return _Word(one, "faint")
    if one in _NOUNS_ALL_THE_SAME:
        return _Word(one, "noun")
    if _ADVERB.fullmatch(word) and word not in WEAK_WORDS:
        return _BREAK
    if word in WEAK_WORDS or _MODIFIER.fullmatch(word):
        return _Word(word, "modifier")
    return _Word(one, "noun")
