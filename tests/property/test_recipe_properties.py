"""How the recipes of the intents become that of a query, whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from classifier.inference import IntentPrediction
from classifier.intents import INTENTS, Intent
from classifier.weights import mix_number, mix_weights
from retrieval.profiles import DEFAULT, Profile, Recipe
from retrieval.types import Leg
from retrieval.weighting import adaptive_weighting, certain

weights = st.fixed_dictionaries({leg: st.floats(0, 1_000) for leg in Leg}).filter(lambda given: any(given.values()))
recipes = st.builds(Recipe, weights=weights, rrf_k=st.floats(1, 1_000), fan_out=st.integers(10, 400))
profiles = st.builds(
    lambda fixed, per_intent, shrink: replace(DEFAULT, fixed=fixed, per_intent=per_intent, shrink=shrink),
    recipes,
    st.fixed_dictionaries({intent: recipes for intent in INTENTS}),
    st.floats(0, 1),
)
distributions = (
    st.lists(st.floats(0, 1), min_size=4, max_size=4)
    .filter(lambda shares: sum(shares) > 1e-6)
    .map(lambda shares: {intent: share / sum(shares) for intent, share in zip(INTENTS, shares, strict=True)})
)


def prediction_of(probabilities: dict[Intent, float]) -> IntentPrediction:
    label = max(INTENTS, key=probabilities.__getitem__)
    return IntentPrediction(label=label, probabilities=probabilities, confidence=probabilities[label])


def shares(recipe: Recipe) -> dict[Leg, float]:
    """Its weights, summing to 1."""
    largest = max(recipe.weights.values())
    scaled = {leg: weight / largest for leg, weight in recipe.weights.items()}
    return {leg: weight / sum(scaled.values()) for leg, weight in scaled.items()}


@given(profiles, distributions)
def test_a_mixture_lies_between_the_recipes_it_is_made_of(profile: Profile, probabilities: dict[Intent, float]) -> None:
    """Its weights sum to 1; none of its numbers is beyond those of every recipe."""
    mixed = adaptive_weighting(prediction_of(probabilities), profile).recipe
    parts = [profile.fixed, *profile.per_intent.values()]
    assert list(mixed.weights) == list(Leg)
    assert sum(mixed.weights.values()) == pytest.approx(1.0)
    for leg in Leg:
        given = [shares(part)[leg] for part in parts]
        assert min(given) - 1e-9 <= mixed.weights[leg] <= max(given) + 1e-9
    assert min(part.rrf_k for part in parts) - 1e-9 <= mixed.rrf_k <= max(part.rrf_k for part in parts) + 1e-9
    assert min(part.fan_out for part in parts) <= mixed.fan_out <= max(part.fan_out for part in parts)


@given(profiles, st.sampled_from(INTENTS))
def test_a_stated_intent_gets_its_own_recipe(profile: Profile, intent: Intent) -> None:
    """As far as `shrink` lets it: wholly at 1, not at all at 0."""
    wholly = adaptive_weighting(certain(intent), replace(profile, shrink=1.0)).recipe
    own = profile.per_intent[intent]
    assert wholly.weights == pytest.approx(shares(own))
    assert wholly.rrf_k == pytest.approx(own.rrf_k)
    assert wholly.fan_out == own.fan_out
    fixed = adaptive_weighting(certain(intent), replace(profile, shrink=0.0)).recipe
    assert fixed.weights == pytest.approx(shares(profile.fixed))
    assert fixed.rrf_k == pytest.approx(profile.fixed.rrf_k)
    assert fixed.fan_out == profile.fixed.fan_out


@given(profiles, distributions)
def test_an_unfamiliar_query_gets_the_fixed_recipe(profile: Profile, probabilities: dict[Intent, float]) -> None:
    """However sure the classifier is, and at half the familiarity it is half way there."""
    doubt = {"shrink": profile.shrink, "familiarity": 0.0}
    per_intent = {intent: recipe.weights for intent, recipe in profile.per_intent.items()}
    mixed = mix_weights(probabilities, per_intent, profile.fixed.weights, **doubt)
    assert mixed == pytest.approx(shares(profile.fixed))
    rrf_ks = {intent: recipe.rrf_k for intent, recipe in profile.per_intent.items()}
    fixed = profile.fixed.rrf_k
    assert mix_number(probabilities, rrf_ks, fixed, **doubt) == pytest.approx(fixed)
    whole = mix_number(probabilities, rrf_ks, fixed, shrink=profile.shrink)
    half = mix_number(probabilities, rrf_ks, fixed, shrink=profile.shrink, familiarity=0.5)
    assert half == pytest.approx((whole + fixed) / 2)


@pytest.mark.parametrize("familiarity", [-0.1, 1.1, float("nan")])
def test_familiarity_is_a_share(familiarity: float) -> None:
    uniform = dict.fromkeys(INTENTS, 0.25)
    with pytest.raises(ValueError, match="familiarity"):
        mix_number(uniform, uniform, 1.0, shrink=1.0, familiarity=familiarity)
