"""Excerpts: the sentences of a long text around those that match the query best."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import log

from retrieval.answer.snippet import ELLIPSIS, query_terms, snippet, terms_within
from retrieval.answer.token_counter import surely_exceeds
from retrieval.text.analysis import analyze, resolve_language

_END = re.compile(r"""([.!?…؟۔।॥։።။]["'”’)\]]?)\s+|([。！？｡]["'”’)\]」』）]?)|\n+""")
"""The end of a sentence: a stop of any script before a space, a full-width stop, or a line break."""

_LABEL = re.compile(r"[\W_]{0,8}(?:\d{1,3}|[^\W\d_])\.\W{0,8}")
"""The number or letter of a list's entry, which is no sentence: "2. Soak the beans.". Bounded, as each of a row of dots
is tried with all before it."""

_CHARS_PER_TOKEN = 6
"""Characters kept per token of a sentence that is itself too long; shortened further until it fits."""

_LEAST_CHARS = 24


def excerpt(
    text: str, query: str, language: str, *, max_tokens: int, count: Callable[[str], int], speaker: str | None = None
) -> str | None:
    """The text if it has at most `max_tokens`, else the sentences around its best match, "…" where it is cut.

    A sentence is scored by the query's terms in it; terms in fewer sentences count more. The speaker's name does not
    count, as it always stands before the first sentence. A sentence is cut, between words, only if it is too long by
    itself, or if those before it would leave more than half of the room empty. None if not even a few words fit.
    `count` counts the tokens of a text and never returns fewer than `surely_exceeds` assumes. Raises InvalidInput for
    an unknown language.

    >>> text = "It rained. Ann sold her boat. We ate."
    >>> excerpt(text, "boat", "en", max_tokens=6, count=lambda text: len(text.split()))
    '… Ann sold her boat. …'
    """
    if not surely_exceeds(text, max_tokens) and count(text) <= max_tokens:
        return text
    name = resolve_language(language)
    sentences = sentence_spans(text)
    terms = query_terms(query, name).difference(analyze(speaker or "", name))
    scores = _scores([terms_within(text[start:end], terms, name) for start, end in sentences])
    best = max(range(len(sentences)), key=lambda position: (scores[position], -position))
    sentence = text[slice(*sentences[best])]
    if surely_exceeds(sentence, max_tokens):
        return _within_sentence(sentence, query, language, max_tokens=max_tokens, count=count)
    first, last = best, best + 1
    left = max_tokens - count(sentence) - 2 * count(ELLIPSIS)
    while left >= 0 and (first or last < len(sentences)):
        # The better neighbour; of equal ones, the one on the side with less shown.
        before = (scores[first - 1], last - best) if first else (-1.0, 0)
        after = (scores[last], best - first + 1) if last < len(sentences) else (-1.0, 0)
        neighbour = text[slice(*sentences[last if after >= before else first - 1])]
        if surely_exceeds(neighbour, left):
            break
        left -= count(neighbour)
        if left >= 0:
            first, last = (first, last + 1) if after >= before else (first - 1, last)
    cut = f"{ELLIPSIS} " * (first > 0)
    shown = cut + text[sentences[first][0] : sentences[last - 1][1]] + f" {ELLIPSIS}" * (last < len(sentences))
    used = count(shown)
    if 2 * used < max_tokens and last < len(sentences):  # a greeting, say, before a long sentence
        part = text[sentences[first][0] : sentences[last][1]]
        beginning = _within_sentence(part, "", language, max_tokens=max_tokens - count(cut), count=count) or ""
        if used < count(cut + beginning) <= max_tokens:
            return cut + beginning
    if used <= max_tokens:
        return shown
    return _within_sentence(sentence, query, language, max_tokens=max_tokens, count=count)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The start and end of each sentence."""
    spans, start = [], 0
    for stop in _END.finditer(text):
        end = stop.end(stop.lastindex) if stop.lastindex else stop.start()
        if _LABEL.fullmatch(text, start, end):
            continue
        if end > start:
            spans.append((start, end))
        start = stop.end()
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _scores(matches: Sequence[frozenset[str]]) -> list[float]:
    """Each sentence's sum over its terms, weighted by how few sentences have them."""
    having: dict[str, int] = {}
    for terms in matches:
        for term in terms:
            having[term] = having.get(term, 0) + 1
    return [sum(log(1 + len(matches) / having[term]) for term in sorted(terms)) for terms in matches]


def _within_sentence(
    sentence: str, query: str, language: str, *, max_tokens: int, count: Callable[[str], int]
) -> str | None:
    chars = min(len(sentence) - 1, max_tokens * _CHARS_PER_TOKEN)
    while chars >= _LEAST_CHARS:
        part = snippet(sentence, query, language, max_chars=chars)
        if count(part) <= max_tokens:
            return part
        chars = chars * 3 // 4
    return None
