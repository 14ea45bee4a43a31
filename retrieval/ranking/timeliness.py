"""Ordering by the time that a query asks for: a named time, how things are now, or how they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from graph.stopwords import PLAIN_GIVEN_NAMES
from retrieval.index.columns import Columns
from retrieval.index.snapshot import NamespaceSnapshot
from retrieval.index.strings import NONE
from retrieval.legs.base import LegRanking, SearchView, best_first
from retrieval.legs.query_terms import QueryTerms, in_periods, words_of
from retrieval.ranking.candidates import Candidates, RankedCandidates
from retrieval.text.speakers import short_names
from retrieval.text.time.periods import Period, without
from retrieval.text.time.sessions import LAST
from retrieval.text.time.states import AskedState, find_state
from retrieval.types.search import Leg

PERIOD_SHARE = 0.1
"""Bonus for a memory of the query's period if the query also names a topic, as a share of the best score.

More would hide events that were told later than they happened; chosen on development conversations.
"""

SESSION_SHARE = 0.3
"""`PERIOD_SHARE` of a session that the query names by number: what was told in it was not told later."""

STATE_SHARE = 0.6
"""Bonus, as a share of its score, for the latest memory found if the query asks for now, the earliest if for before.

Chosen on development conversations (docs/decisions/0021-latest-statements.md).
"""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NamedTime:
    """The memories of the time that a query names.

    Attributes:
        eligible: by slot, whether a memory is of that time and may be found.
        preferred: the same, limited to a speaker that the query names besides the time.
        alone: whether the query names nothing but the time.
        in_session: whether the time is a session named by number.
        weight: the profile's `period_weight`.
    """

    eligible: Mask
    preferred: Mask
    alone: bool
    in_session: bool
    weight: float

    @classmethod
    def from_query(
        cls, text: str, terms: QueryTerms, snapshot: NamespaceSnapshot, view: SearchView, weight: float
    ) -> NamedTime | None:
        """None if the query names no time, or no eligible memory is of it."""
        if not weight or not (terms.session or any(not period.vague for period in terms.periods)):
            return None
        memories = snapshot.index.memories
        # Only speakers with visible memories count.
        codes = memories.speakers.codes.values[: view.visible.size]
        named = [code for code in memories.speakers_named(text) if (view.visible & (codes == code)).any()]
        speakers = [memories.speakers.values[code] for code in named]
        # A short name that is also a word may be one here: "What did William say of the bill in June?"
        names = {word for name in speakers for word in words_of(name) | short_names(name) & PLAIN_GIVEN_NAMES}
        alone = terms.content <= names
        eligible = view.eligible.copy()
        size = eligible.size
        if terms.session:
            # "Last" means the last eligible session: the running one may be stored, and excluded.
            counted = view.eligible if terms.session.number == LAST else view.visible
            eligible &= _of_session(memories, counted, terms.session.number)
        if terms.periods:
            docs = snapshot.postings.period_docs
            if alone:
                docs = docs[in_periods(memories.created.values[docs], terms.periods, grace=timedelta(0))]
            of_time = np.zeros(size, np.bool_)
            of_time[docs] = True
            eligible &= of_time
        if not eligible.any():
            return None
        spoken = np.isin(codes, named) if named else np.zeros(size, np.bool_)
        return cls(eligible, eligible & spoken, alone, terms.session is not None, weight)

    @property
    def certain(self) -> bool:
        """Whether the answer must have been told at that time, so that every leg looks there."""
        return self.alone or self.in_session

    def first(self, ranked: RankedCandidates, candidates: Candidates) -> RankedCandidates:
        """The order with the memories of the time first, or nearer to the top if the query also names a topic.

        score'(d) = score(d) + weight * share * the best score, for those d of the time.
        """
        if not ranked.scores:
            return ranked
        docs = np.array(candidates.docs, np.int64)[ranked.numbers]
        gain = self.eligible[docs].astype(np.float64)
        if self.alone:
            gain += self.preferred[docs]
        share = 1.0 if self.alone else SESSION_SHARE if self.in_session else PERIOD_SHARE
        return ranked.reordered(np.array(ranked.scores) + self.weight * share * ranked.scores[0] * gain)

    @property
    def reason(self) -> str:
        """Its effect, for `explain`."""
        what = "asks for a time alone" if self.alone else "names a time"
        effect = "come first" if self.alone and self.weight >= 1 else "rank higher"
        return f"the query {what}, so the memories of that time {effect}"


@dataclass(frozen=True, slots=True)
class StateOrder:
    """The order for a query that asks how things are now, or how they were before they changed.

    Of several statements about the same thing the latest holds now; legs that compare words and meaning cannot tell
    which one that is.

    Attributes:
        created: by slot, microseconds since 2000.
        weight: the profile's `period_weight`.
    """

    state: AskedState
    created: NDArray[np.int64]
    weight: float

    @classmethod
    def from_query(cls, text: str, periods: Sequence[Period], memories: Columns, weight: float) -> StateOrder | None:
        """None if the query does not say which state it asks for, outside the times that it names."""
        # "The day before yesterday" asks for no earlier state.
        state = find_state(without(text, [period.span for period in periods])) if weight else None
        return None if state is None else cls(state, memories.created.values, weight)

    def break_ties(self, rankings: Mapping[Leg, LegRanking]) -> dict[Leg, LegRanking]:
        """Rankings with hits of the same score by time, not by id: a rank by id would hide which is the latest."""
        by_time = {}
        for leg, ranking in rankings.items():
            ties = np.append(0, np.cumsum(ranking.scores[1:] != ranking.scores[:-1]))[: len(ranking)]
            order = np.lexsort((-self.state * self.created[ranking.docs], ties))
            by_time[leg] = replace(ranking, docs=ranking.docs[order], scores=ranking.scores[order])
        return by_time

    def first(self, ranked: RankedCandidates, candidates: Candidates) -> RankedCandidates:
        """The order with later memories nearer to the top, or earlier ones if the query asks for those.

        score'(d) = score(d) * (1 + weight * STATE_SHARE * older(d)), see `older_shares`.
        """
        scores = np.array(ranked.scores)
        created = self.created[np.array(candidates.docs, np.int64)[ranked.numbers]]
        older = older_shares(scores, self.state * created)
        return ranked.reordered(scores * (1 + self.weight * STATE_SHARE * older))

    @property
    def reason(self) -> str:
        """Its effect, for `explain`."""
        if self.state is AskedState.LATEST:
            return "the query asks how things are now, so later memories rank higher"
        return "the query asks how things were before, so earlier memories rank higher"


def older_shares(scores: NDArray[np.float64], times: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each memory, the share of the others' scores that belongs to older ones; equally old ones count half.

    Scores are positive; times are in any unit, and negative ones make it the share of newer memories; shape (n,) each.
    """
    moments, moment_of = np.unique(times, return_inverse=True)
    at_moment = np.bincount(moment_of, scores, moments.size)
    older = (np.cumsum(at_moment) - at_moment)[moment_of] + (at_moment[moment_of] - scores) / 2
    others = scores.sum() - scores
    shares: NDArray[np.float64] = np.divide(older, others, out=np.zeros(scores.size), where=others > 0)
    return shares


def joined(everything: LegRanking, named: LegRanking, count: int) -> LegRanking:
    """A leg's hits among the named memories, at most `count`, filled up to that with its other hits; best first.

    What the leg did among the named memories is in the `details` as `named`.
    """
    others = np.flatnonzero(~np.isin(everything.docs, named.docs))[: count - len(named)]
    docs = np.concatenate([named.docs, everything.docs[others]])
    scores = np.concatenate([named.scores, everything.scores[others]])
    order = best_first(docs, scores, everything.ids)
    return replace(
        everything,
        docs=docs[order],
        scores=scores[order],
        details={**everything.details, "named": named.details},
        paths={**everything.paths, **named.paths},
        matched_terms={**everything.matched_terms, **named.matched_terms},
    )


def _of_session(memories: Columns, counted: Mask, number: int) -> Mask:
    """Mask of the memories of session `number`, counted in the order of the sessions' first memories.

    Sessions that begin at the same time are ordered by which was written first: codes depend on loading order.
    """
    codes, created = memories.sessions.codes.values[: counted.size], memories.created.values[: counted.size]
    docs = np.flatnonzero(counted & (codes != NONE))
    sessions, written, start = np.unique(codes[docs], return_index=True, return_inverse=True)
    begins = np.full(sessions.size, np.iinfo(np.int64).max)
    np.minimum.at(begins, start, created[docs])
    at = number if number == LAST else number - 1
    if at >= sessions.size or not sessions.size:
        return np.zeros(counted.size, np.bool_)
    mask: Mask = codes == sessions[np.lexsort((written, begins))[at]]
    return mask
