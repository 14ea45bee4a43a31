"""From intent probabilities to leg weights: a mixture, shrunk to the fixed weights by doubt."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, isfinite, log
from typing import Generic, TypeVar

from classifier.intents import INTENTS, Intent

Leg = TypeVar("Leg", bound=str)
"""What weights are given for: "vector", "bm25" and "graph"."""

_SUM_TOLERANCE = 1e-3
_ALL = frozenset(INTENTS)


def confidence(probabilities: Mapping[Intent, float]) -> float:
    """Say how far a distribution is from knowing nothing: 1 - entropy / log(number of intents).

    Args:
        probabilities: one per intent, finite, >= 0, summing to 1 within 0.001.

    Returns:
        In [0, 1]: 0 where all intents are equally likely, 1 where one is certain.

    Raises:
        ValueError: the probabilities are not such a distribution.

    >>> confidence({intent: 0.25 for intent in INTENTS})
    0.0
    """
    return _confidence(_distribution(probabilities))


def belief(probabilities: Mapping[Intent, float], *, shrink: float, familiarity: float = 1.0) -> float:
    """Say how far the intents of a query are to decide: min(1, shrink * confidence * familiarity).

    Args:
        probabilities: one per intent, finite, >= 0, summing to 1 within 0.001.
        shrink: finite, >= 0; how much of the confidence counts.
        familiarity: in [0, 1]; how like the query is to those the classifier was trained on.

    Raises:
        ValueError: an argument is not as described.
    """
    return Mixture(probabilities, shrink=shrink, familiarity=familiarity).belief


class Weightings(Generic[Leg]):
    """Weights of legs for every intent and for none, checked and each summing to 1; `mix_weights` says of what.

    Raises:
        ValueError: the weights are not as `mix_weights` has them.
    """

    __slots__ = ("fixed", "per_intent")

    def __init__(self, per_intent: Mapping[Intent, Mapping[Leg, float]], fixed: Mapping[Leg, float]) -> None:
        self.fixed = _unit_sum(fixed, "fixed")
        self.per_intent = {intent: _unit_sum(_of(per_intent, intent), intent) for intent in INTENTS}
        for intent, weights in self.per_intent.items():
            if weights.keys() != self.fixed.keys():
                raise ValueError(f"{intent} weighs the legs {sorted(weights)}, fixed {sorted(self.fixed)}")


class Mixture:
    """The part that each intent has in what is mixed for one query; `mix_weights` and `mix_number` say how.

    Raises:
        ValueError: an argument is not as these have it.
    """

    __slots__ = ("belief", "shares")

    def __init__(self, probabilities: Mapping[Intent, float], *, shrink: float, familiarity: float = 1.0) -> None:
        if not (isfinite(shrink) and shrink >= 0):
            raise ValueError(f"shrink must be finite and >= 0, not {shrink}")
        if not 0 <= familiarity <= 1:
            raise ValueError(f"familiarity must be in [0, 1], not {familiarity}")
        self.shares = _distribution(probabilities)
        self.belief = min(1.0, shrink * _confidence(self.shares) * familiarity)

    def weights(self, recipes: Weightings[Leg]) -> dict[Leg, float]:
        """Weights of legs, as `mix_weights` mixes them."""
        parts = [(share, recipes.per_intent[intent]) for intent, share in self.shares.items()]
        doubt = 1.0 - self.belief
        mixed = {
            leg: self.belief * fsum([share * weights[leg] for share, weights in parts]) + doubt * weight
            for leg, weight in recipes.fixed.items()
        }
        return _unit_sum(mixed, "mixed")

    def number(self, per_intent: Mapping[Intent, float], fixed: float) -> float:
        """A number, as `mix_number` mixes it."""
        mean = fsum([share * per_intent[intent] for intent, share in self.shares.items()])
        return self.belief * mean + (1.0 - self.belief) * fixed


def mix_weights(
    probabilities: Mapping[Intent, float],
    per_intent: Mapping[Intent, Mapping[Leg, float]],
    fixed: Mapping[Leg, float],
    *,
    shrink: float,
    familiarity: float = 1.0,
) -> dict[Leg, float]:
    """Mix the weights of the intents by their probability; doubt pulls towards the fixed ones.

        lam = belief(probabilities, shrink=shrink, familiarity=familiarity)
        result = lam * sum over intents of p[intent] * per_intent[intent] + (1 - lam) * fixed

    Args:
        probabilities: one per intent, finite, >= 0, summing to 1 within 0.001.
        per_intent: weights for every intent, over the legs of `fixed`; finite, >= 0, not all 0, only
            ratios matter.
        fixed: the weights to use when the intent says nothing.
        shrink: finite, >= 0; how much of the confidence counts. 0 always gives `fixed`, 1 lets a
            certain intent decide alone, above 1 a less certain one does so too.
        familiarity: in [0, 1]; how like the query is to those the classifier was trained on.

    Returns:
        A weight per leg of `fixed`, in its order: finite, >= 0, summing to 1.

    Raises:
        ValueError: an argument is not as described.

    >>> legs = {"vector": 1.0, "bm25": 1.0, "graph": 0.0}
    >>> certain = {i: float(i is Intent.RELATIONSHIP) for i in INTENTS}
    >>> mix_weights(certain, {i: {"vector": 0, "bm25": 0, "graph": 1} for i in INTENTS}, legs, shrink=0.5)
    {'vector': 0.25, 'bm25': 0.25, 'graph': 0.5}
    """
    mixture = Mixture(probabilities, shrink=shrink, familiarity=familiarity)
    return mixture.weights(Weightings(per_intent, fixed))


def mix_number(
    probabilities: Mapping[Intent, float],
    per_intent: Mapping[Intent, float],
    fixed: float,
    *,
    shrink: float,
    familiarity: float = 1.0,
) -> float:
    """Mix a number of each intent as `mix_weights` mixes their weights.

    Returns:
        Between the least and the greatest of `fixed` and `per_intent`.

    Raises:
        ValueError: an argument is not as `mix_weights` has them.

    >>> mix_number({i: float(i is Intent.RELATIONSHIP) for i in INTENTS}, {i: 60 for i in INTENTS}, 20, shrink=0.5)
    40.0
    """
    return Mixture(probabilities, shrink=shrink, familiarity=familiarity).number(per_intent, fixed)


def _of(per_intent: Mapping[Intent, Mapping[Leg, float]], intent: Intent) -> Mapping[Leg, float]:
    if intent not in per_intent:
        raise ValueError(f"no weights for {intent.value}")
    return per_intent[intent]


def _confidence(shares: Mapping[Intent, float]) -> float:
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


def _unit_sum(weights: Mapping[Leg, float], name: str) -> dict[Leg, float]:
    values = weights.values()
    if not (all(map(isfinite, values)) and min(values, default=0.0) >= 0):
        raise ValueError(f"the weights of {name} must be finite and >= 0")
    largest = max(values, default=0.0)
    if largest == 0:
        raise ValueError(f"the weights of {name} are all 0")
    scaled = {leg: weight / largest for leg, weight in weights.items()}
    total = fsum(scaled.values())
    return {leg: weight / total for leg, weight in scaled.items()}
