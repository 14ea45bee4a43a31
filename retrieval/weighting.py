"""Which weights a query gets, and why: explicit, the mode's, or mixed from its intent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from classifier.evidence import Evidence, Findings
from classifier.inference import IntentPrediction
from classifier.intents import Intent
from classifier.weights import mix_weights
from retrieval.errors import InvalidInput
from retrieval.legs.base import LegRanking
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


def evidence_of(query: str, rankings: Mapping[Leg, LegRanking], prediction: IntentPrediction) -> Evidence:
    """What the legs' answers say of each other and of the query; for this all three must have answered."""
    findings = {
        leg: Findings([hit.id for hit in ranking.hits], [hit.score for hit in ranking.hits])
        for leg, ranking in rankings.items()
    }
    return Evidence(
        vector=findings[Leg.VECTOR],
        bm25=findings[Leg.BM25],
        graph=findings[Leg.GRAPH],
        attainable=rankings[Leg.BM25].attainable,
        rarities=rankings[Leg.GRAPH].rarities,
        words=len(query.split()),
        probabilities=prediction.probabilities,
    )


def refined(weighting: Weighting, learned: Mapping[str, float], profile: Profile) -> Weighting:
    """Weights moved towards those that are learned from what the legs found, as far as the profile trusts them."""
    trust = profile.trust
    weights = {leg: (1 - trust) * weighting.weights[leg] + trust * learned[leg] for leg in Leg}
    total = sum(weights.values())
    found = ", ".join(f"{leg} {learned[leg]:.2f}" for leg in Leg)
    return Weighting(
        weights={leg: weight / total for leg, weight in weights.items()},
        reason=f"{weighting.reason}; what the legs found for it asks for {found}, which counts {trust:.0%}",
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
