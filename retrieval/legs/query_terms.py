"""The terms of a query and the calendar periods it mentions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

from graph.dates import MONTHS
from graph.names import normalize
from graph.stopwords import ENGLISH_FUNCTION_WORDS, word_list, words
from retrieval.text.analysis import analyze, term_id
from retrieval.text.time.other_languages import ENGLISH, NUMBERS
from retrieval.text.time.periods import Period, find_periods, period_terms
from retrieval.text.time.sessions import CountedSession, find_session

GRACE = timedelta(days=1)
"""How long after a period a memory about it may have been written."""

_WORD = re.compile(r"\w+")
_ASKING = word_list("words_of_asking")

_DEICTIC = {
    *words(
        "a afternoon ago an before couple day days earlier evening few fortnight hour hours hr hrs in last lately min "
        "mins minute minutes month months morning night nights of past previous recently several the this today "
        "tonight two week weeks weekend weekends wks year years yesterday yrs"
    ),
    *(word for phrase, english in ENGLISH.items() if english not in MONTHS for word in normalize(phrase).split()),
    *NUMBERS,
}
"""Words of purely relative expressions, such as "last week"; "last summer" also contains a word to match."""


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """A query's terms and the terms of its periods, by term id, and the times that it names.

    Attributes:
        session: the session that it counts, if any.
        content: its words besides names of times and those that ask what there was; empty if it names no time.
    """

    terms: Mapping[int, str]
    dates: Mapping[int, str]
    periods: Sequence[Period]
    session: CountedSession | None = None
    content: frozenset[str] = frozenset()

    @classmethod
    def from_query(cls, text: str, language: str, *, asked_at: datetime) -> QueryTerms:
        """Parse a query; "last week" is relative to `asked_at`."""
        periods, session = find_periods(text, asked_at=asked_at), find_session(text)
        spans = [*(period.span for period in periods), *([session.span] if session else [])]
        return cls(
            _terms(_without_deixis(text, periods), language),
            {term_id(term): term for period in periods for term in period_terms(_with_grace(period))},
            periods,
            session,
            _content(text, spans) if spans else frozenset(),
        )

    @property
    def numbers(self) -> list[int]:
        """Ids of all terms."""
        return [*self.terms, *self.dates]


@lru_cache(maxsize=1_024)
def _terms(text: str, language: str) -> Mapping[int, str]:
    return {term_id(term): term for term in analyze(text, language)}


def _content(text: str, spans: Sequence[tuple[int, int]]) -> frozenset[str]:
    """The words outside of some spans that ask for more than what was said or done."""
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return words_of(text) - ENGLISH_FUNCTION_WORDS - _ASKING


def words_of(text: str) -> frozenset[str]:
    """The words of a text, case-folded: "Jean-Luc" has two."""
    return frozenset(_WORD.findall(text.casefold()))


def _without_deixis(text: str, periods: Sequence[Period]) -> str:
    """The query without "last week" and the like: such words stand for a time and may occur in a memory of any time."""
    for period in reversed(periods):
        start, end = period.span
        if _DEICTIC.issuperset(normalize(text[start:end]).split()):
            text = f"{text[:start]} {text[end:]}"
    return text


def _with_grace(period: Period) -> Period:
    """The period extended by `GRACE`: events are often told the day after."""
    if period.end is None or period.end > datetime.max.replace(tzinfo=period.end.tzinfo) - GRACE:
        return period
    return replace(period, end=period.end + GRACE)
