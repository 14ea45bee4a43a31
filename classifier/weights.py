"""From intent probabilities to leg weights: a mixture, shrunk towards the fixed weights by uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, isfinite, log
from typing import Generic, TypeVar

from classifier.intents import INTENTS, Intent

LegName = TypeVar("LegName", bound=str)
"""The legs that are weighted: "vector", "bm25" and "graph"."""

_SUM_TOLERANCE = 1e-3
_ALL = frozenset(INTENTS)


class Weightings(Generic[LegName]):
    """Leg weights per intent and without one (`fixed`), over the same legs; each summing to 1.

    Of those given only ratios matter. Raises ValueError unless they are finite, >= 0 and not all 0.
    """

    __slots__ = ("fixed", "per_intent")

    def __init__(self, per_intent: Mapping[Intent, Mapping[LegName, float]], fixed: Mapping[LegName, float]) -> None:
        self.fixed = _unit_sum(fixed, "fixed")
        self.per_intent: dict[Intent, dict[LegName, float]] = {}
        for intent in INTENTS:
            if intent not in per_intent:
                raise ValueError(f"no weights for {intent.value}")
            self.per_intent[intent] = weights = _unit_sum(per_intent[intent], intent)
            if weights.keys() != self.fixed.keys():
                raise ValueError(f"{intent} weighs the legs {sorted(weights)}, fixed {sorted(self.fixed)}")


class Mixture:
    """Mixes the values of all intents by their probabilities, shrunk towards a fixed value by uncertainty.

        belief = min(1, shrink * confidence * in_domain)
        result = belief * sum over intents of p[intent] * per_intent[intent] + (1 - belief) * fixed

    The confidence is 1 - entropy / log(number of intents), in [0, 1]. There is one probability per intent, finite and
    >= 0, and their sum is 1 within 0.001. `shrink`, finite and >= 0, is the factor on the confidence: 0 always gives
    the fixed weights; with 1 a certain intent decides alone, above 1 a less certain one as well. `in_domain` is the
    similarity of the query to the classifier's training data, in [0, 1]. Raises ValueError for anything else.

    >>> certain = {i: float(i is Intent.RELATIONSHIP) for i in INTENTS}
    >>> mixture = Mixture(certain, shrink=0.5)
    >>> graph_alone = {i: {"vector": 0, "bm25": 0, "graph": 1} for i in INTENTS}
    >>> mixture.weights(Weightings(graph_alone, {"vector": 1.0, "bm25": 1.0, "graph": 0.0}))
    {'vector': 0.25, 'bm25': 0.25, 'graph': 0.5}
    >>> mixture.number({i: 60 for i in INTENTS}, 20)
    40.0
    """

    __slots__ = ("belief", "shares")

    def __init__(self, probabilities: Mapping[Intent, float], *, shrink: float, in_domain: float = 1.0) -> None:
        if not (isfinite(shrink) and shrink >= 0):
            raise ValueError(f"shrink must be finite and >= 0, not {shrink}")
        if not 0 <= in_domain <= 1:
            raise ValueError(f"in_domain must be in [0, 1], not {in_domain}")
        self.shares = _distribution(probabilities)
        self.belief = min(1.0, shrink * _confidence(self.shares) * in_domain)

    def weights(self, recipes: Weightings[LegName]) -> dict[LegName, float]:
        """The weight of each leg of `fixed`, in that order: finite, >= 0, summing to 1."""
        parts = [(share, recipes.per_intent[intent]) for intent, share in self.shares.items()]
        doubt = 1.0 - self.belief
        mixed = {
            leg: self.belief * fsum([share * weights[leg] for share, weights in parts]) + doubt * weight
            for leg, weight in recipes.fixed.items()
        }
        return _unit_sum(mixed, "mixed")

    def number(self, per_intent: Mapping[Intent, float], fixed: float) -> float:
        """A number per intent mixed in the same way; between the least and the greatest of the arguments."""
        mean = fsum([share * per_intent[intent] for intent, share in self.shares.items()])
        return self.belief * mean + (1.0 - self.belief) * fixed


def _confidence(shares: Mapping[Intent, float]) -> float:
    """The certainty of a distribution: 1 - entropy / log(number of intents), in [0, 1]."""
    entropy = -fsum([share * log(share) for share in shares.values() if share > 0])
    return min(1.0, max(0.0, 1.0 - entropy / log(len(INTENTS))))


def _distribution(probabilities: Mapping[Intent, float]) -> dict[Intent, float]:
    if probabilities.keys() != _ALL:
        raise ValueError(f"probabilities must name every intent once, not {sorted(probabilities)}")
    values = probabilities.values()
    if not (all(map(isfinite, values)) and min(values) >= 0):
        raise ValueError("probabilities must be finite and >= 0")
    total = fsum(values)
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise ValueError(f"probabilities must sum to 1, not {total}")
    return {intent: probabilities[intent] / total for intent in INTENTS}


def _unit_sum(weights: Mapping[LegName, float], name: str) -> dict[LegName, float]:
    values = weights.values()
    if not (all(map(isfinite, values)) and min(values, default=0.0) >= 0):
        raise ValueError(f"the weights of {name} must be finite and >= 0")
    largest = max(values, default=0.0)
    if largest == 0:
        raise ValueError(f"the weights of {name} are all 0")
    scaled = {leg: weight / largest for leg, weight in weights.items()}
    total = fsum(scaled.values())
    return {leg: weight / total for leg, weight in scaled.items()}
