"""Rescoring a query's candidates: their features, replies before questions, the bonus for memories of its period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from classifier.candidates import CandidateInputs
from classifier.rescorer import RescoredCandidates
from classifier.traits import query_traits
from retrieval.index.columns import Columns
from retrieval.index.query_vectors import QueryVectors, cosines
from retrieval.index.strings import NONE, CategoryColumn
from retrieval.legs.bm25_scoring import coverage
from retrieval.legs.query_terms import words_of
from retrieval.ranking.candidates import Candidates
from retrieval.text.speakers import is_assistant
from retrieval.types.search import Leg

T = TypeVar("T")

PERIOD_BONUS = 2.0
"""Added to the score of a memory of the query's period, in standard deviations of the query's scores."""

REPLY_REACH = 1.0
"""How far a reply may score below the question to come before it, in the same unit.

Chosen on development conversations (docs/decisions/0044-replies-before-questions.md).
"""


def candidate_inputs(
    memories: Columns, vectors: QueryVectors, query: str, embedding: NDArray[np.float32] | None, candidates: Candidates
) -> CandidateInputs | None:
    """Features of the memories that the legs ranked, by number; None if all of them have been deleted.

    `vectors` has already read the candidates' if there is an `embedding` of the query, shape (dimensions,).
    """
    numbers: Sequence[int] = range(len(candidates.docs))
    docs, rankings = np.array(candidates.docs, np.int64), candidates.rankings
    rows = np.zeros(docs.size, np.int64) if embedding is None else vectors.rows_of(candidates.docs)
    is_read = rows >= 0
    if not is_read.all():
        docs, rows, numbers = docs[is_read], rows[is_read], np.flatnonzero(is_read).tolist()
    if not docs.size:
        return None
    speakers = memories.speakers.codes.values[docs]
    titles = memories.titles.codes.values[docs]
    covered, shared, rarest = coverage(rankings[Leg.BM25].terms if Leg.BM25 in rankings else None, docs)
    text_cosines = context_cosines = np.zeros(docs.size, np.float32)
    if embedding is not None:
        text_cosines, context_cosines = (
            cosines(memory_vectors, embedding, rows)
            for memory_vectors in (vectors.text_vectors, vectors.context_vectors)
        )
    return CandidateInputs(
        ids=numbers,
        own=text_cosines,
        mixed=context_cosines,
        vectors=None if embedding is None else vectors.text_vectors,
        covered=covered,
        shared=shared,
        rarest=rarest,
        traits=memories.traits.values[docs],
        assistant=by_string(memories.speakers, speakers, is_assistant, False),
        named=_among(speakers, memories.speakers_named(query)),
        speakers=speakers,
        sessions=memories.sessions.codes.values[docs],
        titled=by_string(memories.titles, titles, partial(share_of_title, words_of(query)), 0.0),
        has_title=titles != NONE,
        query=query_traits(query),
        vector_rows=rows,
    )


def _among(codes: NDArray[np.int32], wanted: Sequence[int]) -> NDArray[np.bool_]:
    """A mask of the codes that are in `wanted`."""
    found = np.zeros(codes.size, np.bool_)
    for code in wanted:
        found |= codes == code
    return found


def by_string(column: CategoryColumn, codes: NDArray[np.int32], value_of: Callable[[str], T], missing: T) -> list[T]:
    """A value for each memory, computed once per distinct string of a column, given the strings' codes."""
    values = {code: value_of(column.values[code]) for code in {*codes.tolist()} - {NONE}}
    return [values.get(code, missing) for code in codes.tolist()]


def share_of_title(query_words: frozenset[str], title: str) -> float:
    """The share of a title's words that are among the query's words; 0 for a title without words."""
    words = _words_of_title(title)
    return len(words & query_words) / len(words) if words else 0.0


_words_of_title = lru_cache(maxsize=4_096)(words_of)


def favouring_period(rescored: RescoredCandidates, candidates: Candidates, weight: float) -> RescoredCandidates:
    """Add a bonus to memories of the query's period, which BM25 knows and the model does not see.

    It is scaled by `weight`, the profile's `period_weight`.
    """
    bm25 = candidates.rankings.get(Leg.BM25)
    terms = None if bm25 is None else bm25.terms
    if terms is None or not terms.period_docs.size:
        return rescored
    docs, period_docs = np.array(candidates.docs), terms.period_docs
    nearest = np.minimum(period_docs.searchsorted(docs), period_docs.size - 1)  # may be all memories: no set
    favoured = (period_docs[nearest] == docs).tolist()
    bonus = weight * PERIOD_BONUS * float(np.std(list(rescored.scores.values())))
    scores = {number: score + bonus * favoured[number] for number, score in rescored.scores.items()}
    return replace(rescored, scores=scores)


def replies_first(rescored: RescoredCandidates, candidates: Candidates, memories: Columns) -> RescoredCandidates:
    """Exchange the scores of a turn that only asks and of the reply to it, if the reply's is little lower.

    The question has more of the query's words, but the reply says what is searched for. An assistant's reply does not:
    there the question tells what its user has or wants.
    """
    scores = dict(rescored.scores)
    reach = REPLY_REACH * float(np.std(list(scores.values())))
    numbers = {candidates.docs[number]: number for number in scores}
    asks, following, speakers = memories.asks.values, memories.next.values, memories.speakers.codes.values
    for doc, question in numbers.items():
        after = int(following[doc])
        reply = numbers.get(after)
        if not asks[doc] or reply is None or asks[after] or speakers[after] in (NONE, speakers[doc]):
            continue
        near = 0 < scores[question] - scores[reply] <= reach
        if near and not is_assistant(memories.speakers.values[speakers[after]]):
            scores[question], scores[reply] = scores[reply], scores[question]
    return replace(rescored, scores=scores)


def in_words(rescored: RescoredCandidates, *, identified: bool) -> str:
    """How far the rescorer moved the order, and whether memories come first for an identifier, for `explain`."""
    return (
        f"the rescorer's order counts {rescored.share:.0%}: the candidates are {rescored.in_domain:.0%} like its "
        "training data, and on unlike data it counts as far as it helped on held-out sets"
    ) + "; memories that hold the query's identifier come first" * identified
