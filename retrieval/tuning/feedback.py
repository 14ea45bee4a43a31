"""Labelled queries of what callers said: judgements as they are, clicks corrected for where the memory stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.evaluation.folder import Query
from retrieval.store.feedback import Judged
from retrieval.tuning.collect import Labelled
from retrieval.types import Filters

LEAST_SEARCHES = 50
LEAST_POSITIVE = 30
"""Fewer judged searches, or fewer with anything positive, are refused: what they show is chance."""

MOST_PER_CLICK = 10.0
"""A click is worth no more than this, however far down it was: rare ones would decide alone."""

FEEDBACK = "feedback"
"""The type of a query that comes from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gained:
    """What a search's feedback says is worth finding, and what it counts.

    Attributes:
        gains: in (0, 1], by memory; empty where nothing positive was said.
        weight: of the search among the others.
    """

    gains: dict[str, float]
    weight: float


def labelled_searches(judged: Sequence[Judged], namespace: str, *, position_bias: float) -> list[Labelled]:
    """The searches with anything positive, in the order of time.

    Args:
        judged: feedback of a namespace.
        namespace: its name.
        position_bias: the exponent eta of the probability that a place is looked at, (1 / rank) ^ eta.

    Raises:
        InvalidInput: there is too little to learn from.
    """
    found = [
        Labelled(
            query=Query(each.id, namespace, each.query, FEEDBACK, sorted(gained.gains)),
            set=namespace,
            searched=namespace,
            intent=Intent(each.intent) if each.intent in list(Intent) else None,
            gains=gained.gains,
            weight=gained.weight,
            filters=each.filters or Filters(),
            as_of=each.as_of,
            query_timestamp=each.query_timestamp,
        )
        for each in judged
        if (gained := gained_of(each, position_bias=position_bias)).gains
    ]
    if len(judged) < LEAST_SEARCHES or len(found) < LEAST_POSITIVE:
        raise InvalidInput(
            f"namespace {namespace!r} has feedback on {len(judged)} searches, {len(found)} of them with anything "
            f"relevant, rated or clicked; tuning needs at least {LEAST_SEARCHES}, {LEAST_POSITIVE} of them such"
        )
    return found


def gained_of(judged: Judged, *, position_bias: float) -> Gained:
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
