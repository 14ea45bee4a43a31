"""Labelled queries: of evaluation folders, and of what callers said, clicks corrected for where the memory stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

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
"""Fewer judged searches, or fewer with anything positive, are refused: what they show is chance."""

MOST_PER_CLICK = 10.0
"""A click is worth no more than this, however far down it was: rare ones would decide alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """A query with what is known to answer it.

    Attributes:
        searched: the database's namespace.
        intent: as labelled; None for as classified.
        gains: what each relevant id is worth, above 0; at least one.
        weight: how much the query counts against the others of its set, above 0.
    """

    query: Query
    set: str
    searched: str
    intent: Intent | None
    gains: Mapping[str, float]
    weight: float = 1.0


class _Metadata(Struct, frozen=True):
    intent: Intent | None = None


class _Intents(Struct, frozen=True):
    """What is needed of a row of `queries.jsonl` beside the query itself."""

    id: str
    metadata: _Metadata = _Metadata()


def labelled_queries(folder: EvaluationFolder, *, limit: int | None, seed: int) -> list[Labelled]:
    """The folder's queries with gold, or so many drawn by `seed`, in the folder's order.

    Raises:
        InvalidInput: `metadata.intent` is no intent.
    """
    intents = _labelled_intents(folder.path / "queries.jsonl")
    return [
        Labelled(
            query=query,
            set=folder.name,
            searched=folder.stored_name(query.namespace),
            intent=intents.get(query.id) or _as_intent(query.type),
            gains={id_: float(grade) for id_, grade in query.grades.items()},
        )
        for query in folder.sample(limit, seed)
    ]


def content_of(folder: EvaluationFolder) -> str:
    """A checksum of the folder's rows."""
    return checksum((folder.path / name).read_bytes() for name in ("corpus.jsonl", "queries.jsonl"))


class Gained(NamedTuple):
    """What a search's feedback says is worth finding: gains in (0, 1] by memory, empty for nothing; its own weight."""

    gains: dict[str, float]
    weight: float


def labelled_searches(judged: Sequence[Feedback], namespace: str, *, position_bias: float) -> list[Labelled]:
    """The searches of a namespace with anything positive, in the order of time.

    `judged` has each search once; those whose judged memories are gone do not count. A place is looked at with
    probability (1 / rank) ^ `position_bias`.

    Raises:
        InvalidInput: there is too little to learn from.
    """
    judged = [each for each in judged if each.clicked or any(judged_by_id(each))]
    found = [
        Labelled(
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


def gained_of(judged: Feedback, *, position_bias: float) -> Gained:
    """Gains of one search by inverse propensity.

    A click at rank r stands for all the times that a relevant memory there was not looked at, so it counts
    min(10, r ^ eta), the inverse of the examination probability (1 / r) ^ eta: Joachims, Swaminathan and
    Schnabel, WSDM 2017, doi:10.1145/3018661.3018699. An explicit `relevant` counts 1 and a rating itself,
    whatever was shown where; `irrelevant` counts 0 and outweighs a click. What was shown and not clicked says
    nothing. Within a search gains are divided by the greatest, which is what the search then weighs: the mean
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
        return Gained(gains={}, weight=0.0)
    most = max(positive.values())
    return Gained(gains={memory_id: gain / most for memory_id, gain in positive.items()}, weight=most)


def _labelled_intents(file: Path) -> dict[str, Intent]:
    """`metadata.intent` by query, where it is given."""
    decoder = msgspec.json.Decoder(_Intents)
    rows = (row for _, row in read_lines(file, lambda line, _: decode(line, decoder)))
    return {row.id: row.metadata.intent for row in rows if row.metadata.intent is not None}


def _as_intent(type_: str | None) -> Intent | None:
    return Intent(type_) if type_ in list(Intent) else None
