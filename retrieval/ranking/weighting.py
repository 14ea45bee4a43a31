"""The fusion recipe of a query and the reason for it: explicit weights, the mode's, or a mixture by intent."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from msgspec import structs

from classifier.inference import IntentPrediction
from classifier.intents import Intent
from classifier.query_performance import LegScores, QueryPerformanceFeatures
from classifier.weights import Mixture
from retrieval.errors import InvalidInput
from retrieval.profiles.profile import Profile, Recipe
from retrieval.ranking.candidates import Candidates
from retrieval.types.search import IntentReport, Leg, LegWeights, Mode, SearchRequest

_NOTHING = LegScores()
_LEGS = tuple(Leg)  # iterating over the enum itself is many times slower

UNFAMILIAR = 0.5
"""Below this `in_domain` the reason for the weights says that the query is unlike the training data."""

FRAGMENTS_FROM, FRAGMENTS_TO = 0.3, 0.7
"""Share of fragments in a query above which the vector leg counts less, and at which it counts least."""

FRAGMENTED_WEIGHT = 0.5
"""Factor on the vector leg's weight for a query that the embedder reads letter by letter.

nDCG@10 of 382 questions of our corpora in Arabic, Chinese, Hindi, Japanese and Russian: .550 against .543 without it by
the adaptive weights (paired difference .007, 95 % interval .001 to .014; .25 and .75 gain .003), .576 against .575 with
the rescorer. No query of the English sets has that share of fragments.
"""


class Weighting(msgspec.Struct, frozen=True, kw_only=True):
    """How a query's rankings are fused, and why, as a sentence."""

    recipe: Recipe
    reason: str

    @property
    def weights(self) -> Mapping[Leg, float]:
        """By leg."""
        return self.recipe.weights


def check_weights(weights: LegWeights | None) -> None:
    """Raise InvalidInput for explicit weights that cannot rank anything: negative, not finite, or all 0."""
    if weights is None:
        return
    for leg in Leg:
        value = getattr(weights, leg)
        if not math.isfinite(value) or value < 0:
            raise InvalidInput("must be a finite number, 0 or above", loc=("weights", leg.value))
    if not any(getattr(weights, leg) for leg in Leg):
        raise InvalidInput("at least one weight must be above 0", loc=("weights",))


def parse_weights(text: str) -> LegWeights:
    """Weights from `VECTOR,BM25,GRAPH`.

    >>> parse_weights("0.3,0.5,0.2").bm25
    0.5
    """
    try:
        vector, bm25, graph = (float(part) for part in text.split(","))
    except ValueError as exc:
        raise InvalidInput(f"weights are three numbers VECTOR,BM25,GRAPH, not {text!r}") from exc
    weights = LegWeights(vector=vector, bm25=bm25, graph=graph)
    try:
        check_weights(weights)
    except InvalidInput as exc:
        raise InvalidInput(f"{text!r}: {exc.located}") from exc
    return weights


def explicit_weighting(mode: Mode, weights: LegWeights | None, profile: Profile) -> Weighting | None:
    """The weighting if it does not depend on the query; None in mode `adaptive`."""
    if len(mode.legs) == 1:
        chosen, reason = {leg: float(leg in mode.legs) for leg in Leg}, f"mode {mode} runs one leg"
    elif weights is not None:
        chosen, reason = {leg: float(getattr(weights, leg)) for leg in Leg}, "the request gave the weights"
    elif mode is Mode.HYBRID:
        chosen, reason = profile.fixed.weights, _fixed_reason(profile)
    else:
        return None
    return Weighting(recipe=structs.replace(profile.fixed, weights=chosen), reason=reason)


def wants_rescoring(request: SearchRequest, profile: Profile) -> bool:
    """Whether to rescore: as the request says, or else the profile unless one leg runs or weights are explicit."""
    if request.rescore is not None:
        return request.rescore
    asked_for_weights = len(request.mode.legs) == 1 or request.weights is not None
    return profile.rescore and profile.models.rescorer is not None and not asked_for_weights


def check_relevance(min_relevance: float | None, *, rescores: bool) -> None:
    """Raise InvalidInput for a bound above 0 without the rescorer, which computes relevance."""
    if min_relevance and not rescores:
        raise InvalidInput("needs the rescorer, which this request or its profile does without", loc=("min_relevance",))


def adaptive_weighting(prediction: IntentPrediction, profile: Profile) -> Weighting:
    """The profile's recipes mixed in proportion to the intents' probabilities."""
    mixture = Mixture(prediction.probabilities, shrink=profile.shrink, in_domain=prediction.in_domain)
    recipes = profile.per_intent.items()
    weights = mixture.weights(profile.weightings)
    recipe = Recipe(
        weights={leg: weights[leg] for leg in _LEGS},
        rrf_k=mixture.number({intent: each.rrf_k for intent, each in recipes}, profile.fixed.rrf_k),
        fan_out=round(mixture.number({intent: each.fan_out for intent, each in recipes}, profile.fixed.fan_out)),
    )
    return Weighting(recipe=recipe, reason=_mixed_reason(prediction, profile))


def _fixed_reason(profile: Profile) -> str:
    return f"the fixed weights of profile {profile.label}"


def _mixed_reason(prediction: IntentPrediction, profile: Profile) -> str:
    fixed = _fixed_reason(profile)
    if not profile.shrink:
        return fixed
    likely = ", ".join(
        f"{intent.replace('_', ' ')} {share:.0%}"
        for intent, share in sorted(prediction.probabilities.items(), key=lambda item: -item[1])
        if share >= 0.05
    )
    if prediction.in_domain < UNFAMILIAR:
        return (
            f"the query's intent is {likely}, but the query is unlike the training queries, so {fixed} count more than "
            "those of these intents"
        )
    return (
        f"the query's intent is {likely}; the weights of these intents are mixed in that proportion, and with {fixed} "
        "the less certain the intent is"
    )


def evidence_of(query: str, candidates: Candidates, prediction: IntentPrediction) -> QueryPerformanceFeatures:
    """Features of the legs' scores, the query and its intent."""
    rankings = candidates.rankings
    terms = rankings[Leg.BM25].terms if Leg.BM25 in rankings else None
    scores = {leg: LegScores(candidates.of_leg(leg), ranking.scores.tolist()) for leg, ranking in rankings.items()}
    return QueryPerformanceFeatures(
        vector=scores.get(Leg.VECTOR, _NOTHING),
        bm25=scores.get(Leg.BM25, _NOTHING),
        graph=scores.get(Leg.GRAPH, _NOTHING),
        score_upper_bound=0.0 if terms is None else terms.score_upper_bound,
        entity_idfs=rankings[Leg.GRAPH].entity_idfs if Leg.GRAPH in rankings else (),
        words=len(query.split()),
        probabilities=prediction.probabilities,
    )


def with_learned_weights(weighting: Weighting, learned: Mapping[str, float], profile: Profile) -> Weighting:
    """Move the weights towards the learned ones, by the profile's `learned_share`."""
    share = profile.learned_share
    weights = {leg: (1 - share) * weighting.weights[leg] + share * learned[leg] for leg in _LEGS}
    predicted = ", ".join(f"{leg} {learned[leg]:.2f}" for leg in _LEGS)
    return _changed(weighting, weights, f"the legs' results predict {predicted}, which count {share:.0%}")


def allowing_for_fragments(weighting: Weighting, fragment_share: float) -> Weighting:
    """Lower the vector leg's weight for a query that the embedder reads in fragments, which hold little meaning."""
    fragmented = min(max((fragment_share - FRAGMENTS_FROM) / (FRAGMENTS_TO - FRAGMENTS_FROM), 0.0), 1.0)
    if not fragmented:
        return weighting
    factor = 1 - fragmented * (1 - FRAGMENTED_WEIGHT)
    weights = {leg: weight * (factor if leg is Leg.VECTOR else 1.0) for leg, weight in weighting.weights.items()}
    because = f"the embedder reads the query letter by letter, so the vector leg counts {factor:.0%} of that"
    return _changed(weighting, weights, because)


def _changed(weighting: Weighting, weights: Mapping[Leg, float], because: str) -> Weighting:
    """The weighting with new weights, scaled to a sum of 1, and an added reason."""
    total = sum(weights.values())
    recipe = structs.replace(weighting.recipe, weights={leg: weight / total for leg, weight in weights.items()})
    return Weighting(recipe=recipe, reason=f"{weighting.reason}; {because}")


def stated_intent(intent: Intent) -> IntentPrediction:
    """The prediction for an intent given by the caller."""
    return IntentPrediction(probabilities={each: float(each is intent) for each in Intent})


def intent_to_wire(prediction: IntentPrediction) -> IntentReport:
    """A prediction as responses report it."""
    return IntentReport(
        label=prediction.label.value,
        probabilities={intent.value: round(share, 4) for intent, share in prediction.probabilities.items()},
    )
