"""Mixing intent probabilities into leg weights."""

from collections.abc import Mapping
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifier.intents import INTENTS, Intent
from classifier.weights import Mixture, Weightings

LEGS = ("vector", "bm25", "graph")
FIXED = {"vector": 0.4, "bm25": 0.4, "graph": 0.2}
PER_INTENT = {
    Intent.FACT_LOOKUP: {"vector": 0.2, "bm25": 0.7, "graph": 0.1},
    Intent.RELATIONSHIP: {"vector": 0.2, "bm25": 0.3, "graph": 0.5},
    Intent.PREFERENCE: {"vector": 0.8, "bm25": 0.1, "graph": 0.1},
    Intent.OPEN_ENDED: {"vector": 0.5, "bm25": 0.3, "graph": 0.2},
}
UNIFORM = dict.fromkeys(INTENTS, 0.25)


def mix_weights(
    probabilities: Mapping[Intent, float],
    per_intent: Mapping[Intent, Mapping[str, float]],
    fixed: Mapping[str, float],
    shrink: float,
) -> dict[str, float]:
    return Mixture(probabilities, shrink=shrink).weights(Weightings(per_intent, fixed))


weights = st.fixed_dictionaries(
    {leg: st.floats(min_value=0, allow_nan=False, allow_infinity=False) for leg in LEGS}
).filter(lambda w: any(w.values()))
distributions = (
    st.lists(st.floats(min_value=0, max_value=1), min_size=4, max_size=4)
    .filter(lambda p: sum(p) > 1e-6)
    .map(lambda p: {intent: value / sum(p) for intent, value in zip(INTENTS, p, strict=True)})
)
shrinks = st.floats(min_value=0, max_value=10)


@given(distributions, st.fixed_dictionaries({intent: weights for intent in INTENTS}), weights, shrinks)
def test_the_result_is_always_a_set_of_weights(
    probabilities: dict[Intent, float],
    per_intent: dict[Intent, dict[str, float]],
    fixed: dict[str, float],
    shrink: float,
) -> None:
    mixed = mix_weights(probabilities, per_intent, fixed, shrink=shrink)
    assert tuple(mixed) == tuple(fixed)
    assert all(isfinite(weight) and weight >= 0 for weight in mixed.values())
    assert sum(mixed.values()) == pytest.approx(1.0, abs=1e-12)


@given(st.fixed_dictionaries({intent: weights for intent in INTENTS}), shrinks)
def test_knowing_nothing_gives_the_fixed_weights(per_intent: dict[Intent, dict[str, float]], shrink: float) -> None:
    assert mix_weights(UNIFORM, per_intent, FIXED, shrink=shrink) == pytest.approx(FIXED, abs=1e-9)


@given(distributions)
def test_confidence_is_a_share(probabilities: dict[Intent, float]) -> None:
    assert 0 <= Mixture(probabilities, shrink=1).belief <= 1


@given(distributions)
def test_without_trust_the_weights_are_fixed(probabilities: dict[Intent, float]) -> None:
    assert mix_weights(probabilities, PER_INTENT, FIXED, shrink=0) == pytest.approx(FIXED)


@pytest.mark.parametrize("intent", INTENTS)
def test_a_certain_intent_decides_alone(intent: Intent) -> None:
    stated_intent = {i: float(i is intent) for i in INTENTS}
    assert mix_weights(stated_intent, PER_INTENT, FIXED, shrink=1) == pytest.approx(PER_INTENT[intent])


def test_by_hand() -> None:
    """Two intents at one half: confidence 1 - log 2 / log 4 = 1/2, the mixture counts one half."""
    halves = UNIFORM | {Intent.FACT_LOOKUP: 0.5, Intent.RELATIONSHIP: 0.5}
    halves |= {Intent.PREFERENCE: 0.0, Intent.OPEN_ENDED: 0.0}
    mixed = mix_weights(halves, PER_INTENT, FIXED, shrink=1)
    assert mixed == pytest.approx({"vector": 0.3, "bm25": 0.45, "graph": 0.25})


def test_weights_need_not_be_normalised() -> None:
    tenfold = {intent: {leg: 10 * w for leg, w in legs.items()} for intent, legs in PER_INTENT.items()}
    sure = {i: 0.97 if i is Intent.PREFERENCE else 0.01 for i in INTENTS}
    assert mix_weights(sure, tenfold, {leg: 3 * w for leg, w in FIXED.items()}, shrink=1) == pytest.approx(
        mix_weights(sure, PER_INTENT, FIXED, shrink=1)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shrink": -1.0}, "shrink"),
        ({"shrink": nan}, "shrink"),
        ({"fixed": {"vector": -1.0, "bm25": 1.0, "graph": 1.0}}, "fixed"),
        ({"fixed": {"vector": inf, "bm25": 1.0, "graph": 1.0}}, "fixed"),
        ({"fixed": dict.fromkeys(LEGS, 0.0)}, "all 0"),
        ({"fixed": {}}, "all 0"),
        ({"fixed": {"vector": 1.0}}, "weighs the legs"),
        ({"per_intent": {}}, "no weights for fact_lookup"),
        ({"probabilities": {Intent.PREFERENCE: 1.0}}, "every intent"),
        ({"probabilities": dict.fromkeys(INTENTS, 0.5)}, "sum to 1"),
        ({"probabilities": dict.fromkeys(INTENTS, nan)}, "probabilities must be finite"),
        ({"probabilities": UNIFORM | {INTENTS[0]: -0.25, INTENTS[1]: 0.75}}, "probabilities must be finite"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "probabilities": UNIFORM,
        "per_intent": PER_INTENT,
        "fixed": FIXED,
        "shrink": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        mix_weights(**(arguments | change))  # type: ignore[arg-type]  # wrong on purpose
