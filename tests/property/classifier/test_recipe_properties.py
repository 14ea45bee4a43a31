"""Mixing any recipes of the intents into a query's recipe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from classifier.inference import IntentPrediction
from classifier.intents import INTENTS, Intent
from classifier.weights import Mixture
from retrieval.profiles.profile import DEFAULT, Profile, Recipe
from retrieval.ranking.weighting import (
    FRAGMENTS_FROM,
    adaptive_weighting,
    allowing_for_fragments,
    explicit_weighting,
    stated_intent,
)
from retrieval.types.search import Leg, Mode

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


def prediction_of(probabilities: dict[Intent, float], in_domain: float = 1.0) -> IntentPrediction:
    return IntentPrediction(probabilities=probabilities, in_domain=in_domain)


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
    """As far as `shrink` allows: fully at 1, not at all at 0."""
    wholly = adaptive_weighting(stated_intent(intent), replace(profile, shrink=1.0)).recipe
    own = profile.per_intent[intent]
    assert wholly.weights == pytest.approx(shares(own))
    assert wholly.rrf_k == pytest.approx(own.rrf_k)
    assert wholly.fan_out == own.fan_out
    fixed = adaptive_weighting(stated_intent(intent), replace(profile, shrink=0.0)).recipe
    assert fixed.weights == pytest.approx(shares(profile.fixed))
    assert fixed.rrf_k == pytest.approx(profile.fixed.rrf_k)
    assert fixed.fan_out == profile.fixed.fan_out


@pytest.mark.parametrize("in_domain", [0.0, 1.0])
def test_the_reason_names_no_intent_if_intents_do_not_count(in_domain: float) -> None:
    """In mode `hybrid` it is the same."""
    prediction, profile = prediction_of(dict.fromkeys(INTENTS, 0.25), in_domain), replace(DEFAULT, shrink=0.0)
    fixed = explicit_weighting(Mode.HYBRID, None, profile)
    assert fixed is not None
    assert adaptive_weighting(prediction, profile).reason == fixed.reason


def test_the_reason_does_not_call_a_stated_intent_classified() -> None:
    reason = adaptive_weighting(stated_intent(Intent.PREFERENCE), DEFAULT).reason
    assert reason.startswith("the query's intent is preference 100%; ")


@given(profiles, distributions)
def test_an_unfamiliar_query_gets_the_fixed_recipe(profile: Profile, probabilities: dict[Intent, float]) -> None:
    """However certain the classifier is; at half the in_domain it is half way."""
    whole, half, none = (
        adaptive_weighting(prediction_of(probabilities, in_domain), profile).recipe for in_domain in (1.0, 0.5, 0.0)
    )
    assert none.weights == pytest.approx(shares(profile.fixed))
    assert none.rrf_k == pytest.approx(profile.fixed.rrf_k)
    assert none.fan_out == profile.fixed.fan_out
    for leg in Leg:
        assert half.weights[leg] == pytest.approx((whole.weights[leg] + none.weights[leg]) / 2)
    assert half.rrf_k == pytest.approx((whole.rrf_k + none.rrf_k) / 2)


@pytest.mark.parametrize("in_domain", [-0.1, 1.1, float("nan")])
def test_how_far_a_query_is_in_domain_is_a_share(in_domain: float) -> None:
    uniform = dict.fromkeys(INTENTS, 0.25)
    with pytest.raises(ValueError, match="in_domain"):
        Mixture(uniform, shrink=1.0, in_domain=in_domain)


@given(profiles, distributions, st.floats(0, 1), st.floats(0, 1))
def test_more_fragments_never_raise_the_vector_leg(
    profile: Profile, probabilities: dict[Intent, float], one: float, other: float
) -> None:
    """The weights still sum to 1, and the other legs keep their ratio."""
    mixed = adaptive_weighting(prediction_of(probabilities), profile)
    few, many = (allowing_for_fragments(mixed, share).weights for share in sorted((one, other)))
    assert sum(many.values()) == pytest.approx(1.0)
    assert many[Leg.VECTOR] <= few[Leg.VECTOR] + 1e-9
    assert many[Leg.BM25] * few[Leg.GRAPH] == pytest.approx(many[Leg.GRAPH] * few[Leg.BM25], abs=1e-9)
    assert allowing_for_fragments(mixed, FRAGMENTS_FROM) is mixed
