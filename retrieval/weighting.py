"""Which weights a query gets, and why: explicit, the mode's, or mixed from its intent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from classifier.inference import IntentPrediction
from classifier.intents import Intent
from classifier.weights import mix_weights
from retrieval.errors import InvalidInput
from retrieval.profiles import Profile
from retrieval.types import IntentReport, Leg, LegWeights, Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class Weighting:
    """The weights of a query, one per leg, and the reason in words."""

    weights: Mapping[Leg, float]
    reason: str


def check_weights(weights: LegWeights | None) -> None:
    """Refuse explicit weights that cannot rank anything.

    Raises:
        InvalidInput: a weight that is not finite or negative, or all of them 0.
    """
    if weights is None:
        return
    for leg in Leg:
        value = getattr(weights, leg)
        if not math.isfinite(value) or value < 0:
            raise InvalidInput("must be a finite number, 0 or above", loc=("weights", leg.value))
    if not any(getattr(weights, leg) for leg in Leg):
        raise InvalidInput("at least one weight must be above 0", loc=("weights",))


def explicit_weighting(mode: Mode, weights: LegWeights | None, profile: Profile) -> Weighting | None:
    """The weights where they do not depend on the query; None in mode `adaptive`."""
    if len(mode.legs) == 1:
        return Weighting(weights={leg: float(leg in mode.legs) for leg in Leg}, reason=f"mode {mode} runs one leg")
    if weights is not None:
        return Weighting(weights={leg: getattr(weights, leg) for leg in Leg}, reason="the request gave the weights")
    if mode is Mode.HYBRID:
        return Weighting(
            weights={leg: profile.fixed[leg] for leg in Leg}, reason=f"the fixed weights of profile {profile.label}"
        )
    return None


def adaptive_weighting(prediction: IntentPrediction, profile: Profile) -> Weighting:
    """The profile's weights of each intent, mixed by probability."""
    mixed = mix_weights(prediction.probabilities, profile.per_intent, profile.fixed, shrink=profile.shrink)
    likely = ", ".join(
        f"{intent.replace('_', ' ')} {share:.0%}"
        for intent, share in sorted(prediction.probabilities.items(), key=lambda item: -item[1])
        if share >= 0.05
    )
    return Weighting(
        weights={leg: mixed[leg] for leg in Leg},
        reason=f"the query reads as {likely}; the weights of these intents are mixed in that proportion and drawn "
        f"towards the fixed weights of profile {profile.label} as far as the intent is uncertain",
    )


def certain(intent: Intent) -> IntentPrediction:
    """The prediction for an intent that the caller states."""
    return IntentPrediction(
        label=intent, probabilities={each: float(each is intent) for each in Intent}, confidence=1.0
    )


def report(prediction: IntentPrediction) -> IntentReport:
    """A prediction as answers show it."""
    return IntentReport(
        label=prediction.label.value,
        probabilities={intent.value: round(share, 4) for intent, share in prediction.probabilities.items()},
    )
