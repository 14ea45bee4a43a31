"""Whether a question asks how things are now, or how they were before they changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import IntEnum
from itertools import product

from graph.stopwords import data_lines

_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_HAVE_EVER = re.compile(r"\s*(?:have|has)\b", re.IGNORECASE)
"""Begins a question about whether something ever happened: "Has Ana been to Rome before?"."""

_IS_STILL = re.compile(
    r"(?:^|[.,;:!?])\s*(?:and )?(?:am|is|are|do|does|has|have|can|will)(?:n't)?\b[^.?!]*(?<!and )(?<!but )\bstill\b",
    re.IGNORECASE,
)
"""Asks whether something is as it was: "Does Maria still live in Porto?"; "can I eat that and still sleep" does not."""

_MOST_WORDS = 40
"""Longer messages tell how things are rather than ask for it."""


class AskedState(IntEnum):
    """Which of several statements about the same thing a question asks for."""

    EARLIER = -1
    LATEST = 1


def _any_of(phrases: Collection[str]) -> re.Pattern[str]:
    """Matches any phrase; in scripts with spaces between words, whole words only."""
    unspaced = [each for each in phrases if _UNSPACED.match(each)]
    spaced = [each for each in phrases if not _UNSPACED.match(each)]
    either = (rf"\b{_one_of(spaced)}(?!-?\w)" if spaced else "", _one_of(unspaced) if unspaced else "")
    return re.compile("|".join(filter(None, either)), re.IGNORECASE)


def _one_of(phrases: Collection[str]) -> str:
    """An expression for any phrase that checks their first characters first: few words of a query begin one."""
    rests: dict[str, list[str]] = {}
    for phrase in phrases:
        rests.setdefault(phrase[0], []).append(re.escape(phrase[1:]))
    either = "|".join(f"{re.escape(first)}(?:{'|'.join(each)})" for first, each in rests.items())
    return f"(?=[{''.join(map(re.escape, rests))}])(?:{either})"


def _spelled_out(line: str) -> Iterator[str]:
    """The phrases that a line stands for: "{day,week} before" is "day before" and "week before"."""
    return map("".join, product(*(part.split(",") for part in re.split("[{}]", line))))


_NOW, _BEFORE, _NO_STATE, _OTHER = (
    _any_of([phrase for line in data_lines(name) for phrase in _spelled_out(line)])
    for name in ("asks_for_now", "asks_for_before", "asks_for_no_state", "mean_no_state")
)


def find_state(query: str) -> AskedState | None:
    """The state that a query asks for; None if it does not say.

    >>> find_state("Where does Maria live these days?").name
    'LATEST'
    >>> find_state("Where did Maria live before she moved?").name
    'EARLIER'
    >>> find_state("Where does Maria live?")
    """
    if len(query.split()) > _MOST_WORDS:
        return None
    query = _OTHER.sub(" ", query)
    if _BEFORE.search(query):
        return None if _HAVE_EVER.match(query) or _NO_STATE.search(query) else AskedState.EARLIER
    return AskedState.LATEST if _NOW.search(query) or _IS_STILL.search(query) else None
