"""Noun phrases by exclusion: what stands between stop words and punctuation.

After RAKE (Rose, Engel, Cramer and Cowley, Text Mining, 2010, ch. 1), with phrases cut into
overlapping pairs, so that "local homeless shelter" and "homeless shelter" meet.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from graph.names import singular
from graph.scan import Token
from graph.stopwords import STOP_WORDS

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


def find_phrases(tokens: Sequence[Token]) -> Iterator[tuple[str, ...]]:
    """Runs of content words, singular and folded: each word, each pair, and runs of three whole."""
    run: list[str] = []
    last_end = -1
    for token in tokens:
        word = _content(token)
        if word and run and token.start - last_end != 1:
            yield from _phrases_of_run(run)
            run = []
        if word:
            run.append(word)
            last_end = token.end
        elif run:
            yield from _phrases_of_run(run)
            run = []
    if run:
        yield from _phrases_of_run(run)


def find_cjk(text: str) -> Iterator[str]:
    """Katakana words and runs of two to eight Han characters between function characters."""
    for match in _CJK_RUN.finditer(text):
        for piece in _CHINESE_FUNCTION.split(match.group()):
            if 2 <= len(piece) <= MAX_CJK_RUN:
                yield piece


def _phrases_of_run(run: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for word in run:
        yield (word,)
    for left, right in itertools.pairwise(run):
        if left != right:
            yield (left, right)
    if len(run) == MAX_PHRASE_WORDS:
        yield tuple(run)


def _content(token: Token) -> str | None:
    """The folded singular of a content word, None for any other token."""
    if token.kind != "word":
        return None
    word = token.text.replace("\u2019", "'").casefold().removesuffix("'s")
    if not MIN_TERM_CHARS <= len(word) <= MAX_TERM_CHARS or word in STOP_WORDS or word[0].isdigit():
        return None
    if "_" in word or CJK.search(word):
        return None
    return singular(word)
