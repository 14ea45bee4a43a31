"""Switching off parts of a profile."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from classifier.intents import Intent
from retrieval.errors import InvalidInput
from retrieval.evaluation.ablations import ABLATIONS, ablated, parse_parts
from retrieval.profiles.profile import DEFAULT, Profile, Recipe
from retrieval.types.search import Leg


def weights(vector: float, bm25: float, graph: float) -> dict[Leg, float]:
    """Weights by leg."""
    return {Leg.VECTOR: vector, Leg.BM25: bm25, Leg.GRAPH: graph}


def recipe(vector: float, bm25: float, graph: float) -> Recipe:
    """A recipe of these weights."""
    return Recipe(weights=weights(vector, bm25, graph), rrf_k=10, fan_out=40)


PROFILE = Profile(
    name="p",
    version=3,
    fixed=recipe(0.4, 0.4, 0.2),
    per_intent={intent: recipe(0.3, 0.1, 0.6) for intent in Intent},
    shrink=0.5,
)


def test_a_leg_loses_its_weight_to_the_others_by_hand() -> None:
    """.4 : .4 without the graph are halves; .3 : .1 are three quarters and one."""
    found = ABLATIONS["graph"](PROFILE)
    assert found.fixed.weights == pytest.approx(weights(0.5, 0.5, 0.0))
    for intent in Intent:
        assert found.per_intent[intent].weights == pytest.approx(weights(0.75, 0.25, 0.0))
    assert replace(found, fixed=PROFILE.fixed, per_intent=PROFILE.per_intent) == PROFILE


@pytest.mark.parametrize("part", ["vector", "bm25", "graph"])
def test_every_leg_can_go(part: str) -> None:
    """Its weight is 0 and the rest sums to 1, fixed and in every intent."""
    found = ABLATIONS[part](PROFILE)
    for left in (found.fixed, *found.per_intent.values()):
        assert left.weights[Leg(part)] == 0.0
        assert sum(left.weights.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("part", ABLATIONS)
def test_every_part_is_on_by_default(part: str) -> None:
    """To switch off what is off already would measure nothing."""
    assert ABLATIONS[part](DEFAULT) != DEFAULT


def test_a_profile_without_its_only_leg_is_refused() -> None:
    """Nothing would rank."""
    lone = replace(PROFILE, fixed=recipe(0.0, 0.0, 1.0))
    with pytest.raises(InvalidInput, match="profile p@3 ranks by graph alone"):
        ablated(["graph"], lone)


def test_ablated_profiles_have_names_that_requests_can_ask_for() -> None:
    """The name of a system's profile is one of them, and the profile is ablated."""
    found = ablated(["vector", "graph"], PROFILE)
    assert list(found) == ["p-without-vector", "p-without-graph"]
    assert found["p-without-graph"].name == "p-without-graph"
    assert found["p-without-graph"].fixed.weights[Leg.GRAPH] == 0.0


def test_parts_are_parsed() -> None:
    """`all` is all of them; an unknown one is named with those that there are."""
    assert parse_parts("all") == list(ABLATIONS)
    with pytest.raises(InvalidInput, match=r"'graf' cannot be switched off; choose from: vector, bm25, graph"):
        parse_parts("vector,graf")


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ("intents", {"shrink": 0.0}),
        ("evidence", {"learned_share": 0.0}),
        ("rescorer", {"rescore": False}),
        ("neighbours", {"neighbour_share": 0.0}),
        ("anchors", {"anchors": 0}),
        ("noise-cut", {"vector_noise": 2.0, "bm25_noise": 0.0}),
    ],
)
def test_a_part_goes_and_nothing_else(part: str, left: dict[str, float]) -> None:
    """All other fields stay."""
    assert ABLATIONS[part](PROFILE) == replace(PROFILE, **left)


@pytest.mark.parametrize("part", ABLATIONS)
def test_an_ablated_profile_is_one_that_could_be_stored(part: str) -> None:
    """Its fields keep their bounds."""
    (found,) = ablated([part], DEFAULT).values()
    assert msgspec.json.decode(msgspec.json.encode(found), type=Profile) == found
