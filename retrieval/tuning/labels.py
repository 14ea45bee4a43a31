"""Labelled queries: of evaluation folders, and of feedback, with clicks corrected for the rank of the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import EvaluationFolder, Query, read_lines
from retrieval.journal.feedback import judged_by_id
from retrieval.plurals import counted
from retrieval.tuning.runs import checksum
from retrieval.types.journal import Feedback
from retrieval.validation import decode

LEAST_SEARCHES = 50

LEAST_POSITIVE = 30
"""Fewer judged searches, or fewer with a relevant memory, are refused: their results would be chance."""

MOST_PER_CLICK = 10.0
"""Upper limit of a click's weight, whatever its rank: otherwise a few rare ones would decide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedQuery:
    """A query with its known answers.

    Attributes:
        searched: the database's namespace.
        intent: as labelled; None to use the classified one.
        gains: the gain of each relevant id, above 0; at least one.
        weight: relative to the other queries of its set, above 0.
    """

    query: Query
    set: str
    searched: str
    intent: Intent | None
    gains: Mapping[str, float]
    weight: float = 1.0


class _Metadata(Struct, frozen=True):
    intent: Intent | UnsetType | None = UNSET


class _Intents(Struct, frozen=True):
    """The fields read from a row of `queries.jsonl` besides the query itself."""

    id: str
    metadata: _Metadata = _Metadata()


def labelled_queries(folder: EvaluationFolder, *, limit: int | None, seed: int) -> list[JudgedQuery]:
    """The folder's queries with gold, or `limit` of them drawn by `seed`, in the folder's order.

    Raises:
        InvalidInput: `metadata.intent` is not an intent.
    """
    intents = _labelled_intents(folder.path / "queries.jsonl")
    return [
        JudgedQuery(
            query=query,
            set=folder.name,
            searched=folder.stored_name(query.namespace),
            intent=intents[query.id] if query.id in intents else _as_intent(query.type),
            gains={id_: float(grade) for id_, grade in query.grades.items()},
        )
        for query in folder.sample(limit, seed)
    ]


def content_of(folder: EvaluationFolder) -> str:
    """A checksum of the folder's rows."""
    return checksum((folder.path / name).read_bytes() for name in ("corpus.jsonl", "queries.jsonl"))


class SearchGains(NamedTuple):
    """Gains in (0, 1] of the memories that a search's feedback calls relevant, possibly none; the search's weight."""

    gains: dict[str, float]
    weight: float


def labelled_searches(judged: Sequence[Feedback], namespace: str, *, position_bias: float) -> list[JudgedQuery]:
    """The searches of a namespace with a relevant memory, in order of time.

    `judged` has each search once; those without a judged memory that they can still find are ignored. Users look at a
    rank with probability (1 / rank) ^ `position_bias`.

    Raises:
        InvalidInput: there is too little to learn from.
    """
    judged = [each for each in judged if each.clicked or any(judged_by_id(each))]
    found = [
        JudgedQuery(
            query=Query.from_feedback(each, namespace, sorted(gained.gains)),
            set=namespace,
            searched=namespace,
            intent=_as_intent(each.intent),
            gains=gained.gains,
            weight=gained.weight,
        )
        for each in judged
        if (gained := gained_of(each, position_bias=position_bias)).gains
    ]
    if len(judged) < LEAST_SEARCHES or len(found) < LEAST_POSITIVE:
        searches = counted(len(judged), "search", "searches")
        raise InvalidInput(
            f"namespace {namespace!r} has feedback on {searches}, {len(found)} of them with anything "
            f"relevant, rated or clicked; tuning needs at least {LEAST_SEARCHES}, {LEAST_POSITIVE} of them such"
        )
    return found


def gained_of(judged: Feedback, *, position_bias: float) -> SearchGains:
    """Gains of one search by inverse propensity.

    A click at rank r stands for all the times that a relevant memory there was not looked at, so it counts
    min(10, r ^ eta), the inverse of the examination probability (1 / r) ^ eta: Joachims, Swaminathan and
    Schnabel, WSDM 2017, doi:10.1145/3018661.3018699. An explicit `relevant` counts 1 and a rating itself,
    at any rank; `irrelevant` counts 0 and overrides a click. A memory shown but not clicked is no evidence. The
    gains of a search are divided by the greatest, which becomes the weight of the search: the weighted mean
    over searches, divided by the sum of these weights, is the self-normalised estimate (Swaminathan and
    Joachims, NIPS 2015).
    """
    places = {memory_id: rank for rank, memory_id in enumerate(judged.shown, start=1)}
    worth = {
        memory_id: min(MOST_PER_CLICK, float(places[memory_id]) ** position_bias)
        for memory_id in judged.clicked
        if memory_id in places
    }
    worth |= {memory_id: float(rating) for memory_id, rating in judged.ratings.items()}
    worth |= dict.fromkeys(judged.relevant, 1.0) | dict.fromkeys(judged.irrelevant, 0.0)
    positive = {memory_id: worth[memory_id] for memory_id in sorted(worth) if worth[memory_id] > 0}
    if not positive:
        return SearchGains(gains={}, weight=0.0)
    most = max(positive.values())
    return SearchGains(gains={memory_id: gain / most for memory_id, gain in positive.items()}, weight=most)


def _labelled_intents(file: Path) -> dict[str, Intent | None]:
    """`metadata.intent` by query, if given; None says that nobody labelled it, whatever its type."""
    decoder = msgspec.json.Decoder(_Intents)
    rows = (row for _, row in read_lines(file, lambda line, _: decode(line, decoder)))
    return {row.id: row.metadata.intent for row in rows if row.metadata.intent is not UNSET}


def _as_intent(type_: str | None) -> Intent | None:
    return Intent(type_) if type_ in list(Intent) else None
