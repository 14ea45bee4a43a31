"""Which recipe a query's fusion follows, and why: explicit weights, the mode's, or mixed from its intent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from msgspec import structs

from classifier.evidence import Evidence, Findings
from classifier.inference import IntentPrediction
from classifier.intents import Intent
from classifier.weights import Mixture, Weightings
from retrieval.candidates import Candidates
from retrieval.errors import InvalidInput
from retrieval.profiles import Profile, Recipe
from retrieval.types import IntentReport, Leg, LegWeights, Mode, SearchRequest

_LEGS = tuple(Leg)  # iterating over the enumeration itself takes many times as long

_MOST_KEPT = 64
"""Profiles whose recipes are kept as queries mix them."""

UNFAMILIAR = 0.5
"""Below this familiarity the reason for the weights says that the query is a strange one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weighting:
    """How the rankings of a query are fused, and what says why; few ask."""

    recipe: Recipe
    because: Callable[[], str]

    @property
    def reason(self) -> str:
        """Why, in words."""
        return self.because()

    @property
    def weights(self) -> Mapping[Leg, float]:
        """One per leg."""
        return self.recipe.weights


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
    """The weighting where it does not depend on the query; None in mode `adaptive`."""
    if len(mode.legs) == 1:
        alone = {leg: float(leg in mode.legs) for leg in Leg}
        recipe = structs.replace(profile.fixed, weights=alone)
        return Weighting(recipe=recipe, because=lambda: f"mode {mode} runs one leg")
    if weights is not None:
        given = {leg: float(getattr(weights, leg)) for leg in Leg}
        recipe = structs.replace(profile.fixed, weights=given)
        return Weighting(recipe=recipe, because=lambda: "the request gave the weights")
    if mode is Mode.HYBRID:
        return Weighting(recipe=profile.fixed, because=lambda: f"the fixed weights of profile {profile.label}")
    return None


def wants_rescoring(request: SearchRequest, profile: Profile) -> bool:
    """Whether the rescorer orders the candidates.

    As the request says; otherwise as the profile says, but never over one leg alone nor over explicit weights.
    """
    if request.rescore is not None:
        return request.rescore
    asked_for_weights = len(request.mode.legs) == 1 or request.weights is not None
    return profile.rescore and profile.models.rescorer is not None and not asked_for_weights


def adaptive_weighting(prediction: IntentPrediction, profile: Profile) -> Weighting:
    """The profile's recipes of the intents, mixed by probability."""
    return Weighting(recipe=_mixed(prediction, profile), because=partial(_mixed_because, prediction, profile))


def _mixed(prediction: IntentPrediction, profile: Profile) -> Recipe:
    mixture = Mixture(prediction.probabilities, shrink=profile.shrink, familiarity=prediction.familiarity)
    checked = _checked(profile)
    weights = mixture.weights(checked.weights)
    return Recipe(
        weights={leg: weights[leg] for leg in _LEGS},
        rrf_k=mixture.number(checked.rrf_ks, profile.fixed.rrf_k),
        fan_out=round(mixture.number(checked.fan_outs, profile.fixed.fan_out)),
    )


class _Checked:
    """What queries mix of a profile's recipes, number by number."""

    def __init__(self, profile: Profile) -> None:
        recipes = profile.per_intent.items()
        self.profile = profile
        self.weights = Weightings({intent: each.weights for intent, each in recipes}, profile.fixed.weights)
        self.rrf_ks = {intent: each.rrf_k for intent, each in recipes}
        self.fan_outs = {intent: each.fan_out for intent, each in recipes}


_kept: dict[int, _Checked] = {}
"""By the identity of the profile, which is kept with it: to hash all its numbers takes as long as to check them."""


def _checked(profile: Profile) -> _Checked:
    checked = _kept.get(id(profile))
    if checked is None or checked.profile is not profile:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        checked = _kept[id(profile)] = _Checked(profile)
    return checked


def _mixed_because(prediction: IntentPrediction, profile: Profile) -> str:
    likely = ", ".join(
        f"{intent.replace('_', ' ')} {share:.0%}"
        for intent, share in sorted(prediction.probabilities.items(), key=lambda item: -item[1])
        if share >= 0.05
    )
    if prediction.familiarity < UNFAMILIAR:
        return (
            f"the query reads as {likely}, but is unlike those the classifier was trained on, so the fixed weights of "
            f"profile {profile.label} count more than those of these intents"
        )
    return (
        f"the query reads as {likely}; the weights of these intents are mixed in that proportion and drawn "
        f"towards the fixed weights of profile {profile.label} as far as the intent is uncertain"
    )


def evidence_of(query: str, candidates: Candidates, prediction: IntentPrediction) -> Evidence:
    """What the legs' answers say of each other and of the query."""
    findings, rankings, nothing = candidates.findings, candidates.rankings, Findings()
    return Evidence(
        vector=findings.get(Leg.VECTOR, nothing),
        bm25=findings.get(Leg.BM25, nothing),
        graph=findings.get(Leg.GRAPH, nothing),
        attainable=rankings[Leg.BM25].attainable if Leg.BM25 in rankings else 0.0,
        rarities=rankings[Leg.GRAPH].rarities if Leg.GRAPH in rankings else (),
        words=len(query.split()),
        probabilities=prediction.probabilities,
    )


def refined(
    weighting: Weighting, learned: Mapping[str, float], profile: Profile, *, familiarity: float = 1.0
) -> Weighting:
    """Weights moved towards those that are learned from what the legs found, as far as the profile trusts them.

    `familiarity` in [0, 1] says how like the memories are to those they were learned on, where that is known.
    """
    trust = profile.trust * familiarity
    weights = {leg: (1 - trust) * weighting.weights[leg] + trust * learned[leg] for leg in _LEGS}
    total = sum(weights.values())
    return Weighting(
        recipe=structs.replace(weighting.recipe, weights={leg: weight / total for leg, weight in weights.items()}),
        because=partial(_refined_because, weighting, learned, trust),
    )


def _refined_because(weighting: Weighting, learned: Mapping[str, float], trust: float) -> str:
    found = ", ".join(f"{leg} {learned[leg]:.2f}" for leg in Leg)
    return f"{weighting.reason}; what the legs found for it asks for {found}, which counts {trust:.0%}"


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
