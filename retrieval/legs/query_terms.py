"""The terms of a query, the identifiers among them, and the calendar periods it mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from graph.dates import MONTHS
from graph.names import normalize
from graph.stopwords import ENGLISH_FUNCTION_WORDS, word_list, words
from retrieval.index.columns import microseconds
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.terms import Postings
from retrieval.text.analysis import analyze, term_id
from retrieval.text.identifiers import identifier_terms
from retrieval.text.time.other_languages import ENGLISH, NUMBERS
from retrieval.text.time.periods import Period, find_periods, without
from retrieval.text.time.sessions import CountedSession, find_session

GRACE = timedelta(days=1)
"""How long after a period a memory about it may have been written."""

RARE = 10
"""Most memories that may contain an identifier for it to count: as many as a default answer has."""

_DAY = 86_400_000_000
"""Microseconds."""

_CYCLE_DAYS = 146_097
"""Days after which the calendar repeats: 400 years."""

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
    """A query's terms, by term id, and the times that it names.

    Attributes:
        session: the session that it names by number, if any.
        content: its words except names of times and generic question words; empty if it names no time.
        identifiers: the terms that are a whole identifier, not part of one.
    """

    terms: Mapping[int, str]
    periods: Sequence[Period]
    session: CountedSession | None = None
    content: frozenset[str] = frozenset()
    identifiers: frozenset[int] = frozenset()

    @classmethod
    def from_query(cls, text: str, language: str, *, asked_at: datetime) -> QueryTerms:
        """Parse a query; "last week" is relative to `asked_at`."""
        periods, session = find_periods(text, asked_at=asked_at), find_session(text)
        spans = [*(period.span for period in periods), *([session.span] if session else [])]
        return cls(
            _terms(_without_deixis(text, periods), language),
            periods,
            session,
            words_of(without(text, spans, gap=" ")) - ENGLISH_FUNCTION_WORDS - _ASKING if spans else frozenset(),
            frozenset(map(term_id, identifier_terms(text, language))),
        )

    def identified(self, postings: Postings, visible: NDArray[np.bool_]) -> frozenset[int]:
        """The slots of the visible memories that contain an identifier of the query which is rare among them."""
        every = [postings.terms[term].docs for term in self.identifiers if term in postings.terms]
        found = [docs[visible[docs]] for docs in every]
        return frozenset(doc for docs in found if docs.size <= RARE for doc in docs.tolist())

    def with_period_docs(self, snapshot: NamespaceSnapshot) -> NamespaceSnapshot:
        """The snapshot, its postings extended by the memories of the query's periods; call before awaiting anything."""
        if not self.periods:
            return snapshot
        memories = snapshot.index.memories
        of_periods = memories.alive.values & in_periods(memories.created.values, self.periods)
        postings = structs.replace(snapshot.postings, period_docs=np.flatnonzero(of_periods).astype(np.int32))
        return structs.replace(snapshot, postings=postings)


@lru_cache(maxsize=1_024)
def _terms(text: str, language: str) -> Mapping[int, str]:
    return {term_id(term): term for term in analyze(text, language)}


def words_of(text: str) -> frozenset[str]:
    """The words of a text, case-folded: "Jean-Luc" has two."""
    return frozenset(_WORD.findall(text.casefold()))


def _without_deixis(text: str, periods: Sequence[Period]) -> str:
    """The query without "last week" and the like, whose words may occur in a memory of any time."""
    spans = [period.span for period in periods]
    relative = [span for span in spans if _DEICTIC.issuperset(normalize(text[slice(*span)]).split())]
    return without(text, relative, gap=" ")


def in_periods(created: NDArray[np.int64], periods: Iterable[Period], *, grace: timedelta = GRACE) -> NDArray[np.bool_]:
    """Mask of the moments, in microseconds since 2000, that are in one of the periods or up to `grace` after it."""
    mask = np.zeros(created.size, np.bool_)
    for period in periods:
        if period.month is not None:
            mask |= _months().take(created // _DAY, mode="wrap") == period.month
        else:
            mask |= (created >= _since(period.start, -1)) & (created < _since(period.end, 1, grace))
    return mask


@cache
def _months() -> NDArray[np.int8]:
    """The month of each day of the calendar's cycle; NumPy takes ten times as long to convert each memory's time."""
    days = np.datetime64("2000-01-01") + np.arange(_CYCLE_DAYS)
    return (days.astype("datetime64[M]").astype(np.int64) % 12 + 1).astype(np.int8)


def _since(moment: datetime | None, side: int, grace: timedelta = timedelta(0)) -> int:
    if moment is None:
        return side * np.iinfo(np.int64).max
    return microseconds(moment) + grace // timedelta(microseconds=1)
